import { randomUUID } from 'node:crypto';
import { type FileHandle, link, open, rename, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { isErrno } from '#otel/regular-file.ts';

const NAME = 'lock';

/** A directory that one gateway has for itself. */
export interface StateLock {
  /** Lets go of it. */
  release(): Promise<void>;
}

/** Where it is told that a directory cannot be held. A pino logger fits. */
interface LockLog {
  warn(fields: object, message: string): void;
}

/** Another process has the directory. The message is one line for the operator. */
class StateInUseError extends Error {
  override readonly name = 'StateInUseError';

  constructor() {
    super('another gateway that runs has it: each needs one of its own');
  }
}

/**
 * Takes a directory for this process: two gateways in one would send each other's spool, and forget each other's
 * drains. The lock is a socket on which this process listens: the system closes it with the process, however that
 * ends, and containers that share the directory find it, whatever numbers their processes have. Seen from another
 * machine, by way of a network file system, it is one that was left. Rejects while another process has the directory;
 * where there can be no sockets, says so and holds nothing.
 */
export async function lockState(directory: string, log: LockLog): Promise<StateLock> {
  const own = `${NAME}.${randomUUID()}`;
  await using folder = await open(directory);
  const place = { directory, folder };
  let server: Server | null = null;
  try {
    server = await listenAt(toSocketPath(place, own));
    await takeName(place, own);
  } catch (error) {
    server?.close();
    if (error instanceof StateInUseError) throw error;
    log.warn({ err: error }, 'state_dir cannot be locked: a second gateway in it would not be noticed');
    return { release: async () => undefined };
  } finally {
    await unlink(join(directory, own)).catch(() => undefined);
  }
  const held = server;
  return {
    async release() {
      await unlink(join(directory, NAME)).catch(() => undefined);
      held.close();
    },
  };
}

interface Place {
  readonly directory: string;
  /** The directory, opened. */
  readonly folder: FileHandle;
}

/** A path of a socket has 107 bytes at most: a long one is shortened, as only Linux can. */
function toSocketPath({ directory, folder }: Place, name: string): string {
  const path = join(directory, name);
  return Buffer.byteLength(path) <= 100 ? path : `/proc/self/fd/${folder.fd}/${name}`;
}

/** It does not keep the process: the end of the process lets go of it. */
function listenAt(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ path }, () => resolve(server.unref()));
  });
}

/** Gives the socket, which listens already, the name that all look for: one of them at a time can have it. */
async function takeName(place: Place, own: string): Promise<void> {
  const { directory } = place;
  const [name, mine] = [join(directory, NAME), join(directory, own)];
  for (;;) {
    try {
      await link(mine, name);
      return;
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error;
    }
    if (await isListenedTo(toSocketPath(place, NAME))) throw new StateInUseError();
    await removeLeft(place, `${own}.left`);
  }
}

/** Somebody else may have found it too, and have put its own in its place by now: that is put back. */
async function removeLeft(place: Place, aside: string): Promise<void> {
  const { directory } = place;
  const [name, left] = [join(directory, NAME), join(directory, aside)];
  try {
    await rename(name, left);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  const isFresh = await isListenedTo(toSocketPath(place, aside));
  if (isFresh) await link(left, name);
  await unlink(left);
}

function isListenedTo(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      // Nobody took it from the system's hands yet: somebody listens.
      if (isErrno(error, 'EAGAIN')) resolve(true);
      else if (isErrno(error, 'ECONNREFUSED') || isErrno(error, 'ENOENT')) resolve(false);
      else reject(error);
    });
  });
}
