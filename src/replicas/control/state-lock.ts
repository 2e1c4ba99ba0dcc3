import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { isErrno } from '#otel/disk/regular-file.ts';

const LOCK_NAME = /^lock\.[0-9a-f-]{36}$/;
const HELD = 'held\n';

/** A process that does not say in this time what it has decided stands still: it counts as one that runs. */
const DECISION_MS = 5_000;

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
 * drains. Each has a socket in it on which it listens: the system closes it with the process, however that ends, and
 * containers that share the directory find it, whatever numbers their processes have. Seen from another machine, by
 * way of a network file system, it is one that was left. Rejects while another process has the directory; where there
 * can be no sockets, says so and holds nothing.
 *
 * Of several that start at once one gets it: each shows its socket before it looks for those of others, so that of two
 * at least one sees the other. One that sees a name before its own gives up; one that sees a name behind its own waits
 * until that one has decided.
 */
export async function lockState(directory: string, log: LockLog): Promise<StateLock> {
  await using folder = await open(directory);
  const place = { directory, folder };
  const own = `lock.${randomUUID()}`;
  const door = new Door();
  try {
    await door.open(toSocketPath(place, `${own}.new`));
    await rename(join(directory, `${own}.new`), join(directory, own));
    const names = (await readdir(directory)).filter((name) => LOCK_NAME.test(name) && name !== own);
    await Promise.all(names.map((name) => outlast(place, name, { isFirst: own < name })));
  } catch (error) {
    await unlink(join(directory, own)).catch(() => undefined);
    door.close();
    if (error instanceof StateInUseError) throw error;
    log.warn({ err: error }, 'state_dir cannot be locked: a second gateway in it would not be noticed');
    return { release: async () => undefined };
  }
  door.hold();
  return {
    async release() {
      await unlink(join(directory, own)).catch(() => undefined);
      door.close();
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

/** Where others ask whether somebody is there. It does not keep the process. */
class Door {
  readonly #server: Server = createServer((socket) => this.#receive(socket)).unref();
  readonly #waiting = new Set<Socket>();
  #isHeld = false;

  open(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ path }, resolve);
    });
  }

  /** The directory is taken: all who ask are told. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#waiting) socket.end(HELD);
  }

  /** Nobody is there any more. */
  close(): void {
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
  }

  #receive(socket: Socket): void {
    socket.on('error', () => undefined).resume();
    if (this.#isHeld) {
      socket.end(HELD);
      return;
    }
    this.#waiting.add(socket);
    socket.once('close', () => this.#waiting.delete(socket));
  }
}

/**
 * Resolves when nobody is behind this name, or nobody any more: what was left is removed. Rejects with a
 * StateInUseError if somebody is. `isFirst`: our own name comes before it.
 */
async function outlast(place: Place, name: string, { isFirst }: { isFirst: boolean }): Promise<void> {
  const found = await ask(toSocketPath(place, name), { isFirst });
  if (found === 'somebody') throw new StateInUseError();
  // No name is ever used again, and each is listened on before it can be seen.
  if (found === 'nobody') await unlink(join(place.directory, name)).catch(() => undefined);
}

function ask(path: string, { isFirst }: { isFirst: boolean }): Promise<'somebody' | 'nobody' | 'left'> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    let deadline: NodeJS.Timeout | undefined;
    const end = (found: 'somebody' | 'nobody' | 'left') => {
      clearTimeout(deadline);
      socket.destroy();
      resolve(found);
    };
    deadline = setTimeout(() => end('somebody'), DECISION_MS);
    socket
      .once('connect', () => {
        if (!isFirst) end('somebody');
      })
      .once('data', () => end('somebody'))
      .once('close', () => end('left'))
      .once('error', (error) => {
        if (isErrno(error, 'ECONNREFUSED') || isErrno(error, 'ENOENT')) end('nobody');
        // As many wait there as the system keeps.
        else if (isErrno(error, 'EAGAIN')) end('somebody');
        else if (isErrno(error, 'ECONNRESET') || isErrno(error, 'EPIPE')) end('left');
        else {
          clearTimeout(deadline);
          reject(error);
        }
      });
  });
}
