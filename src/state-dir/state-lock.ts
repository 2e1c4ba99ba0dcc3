import { randomUUID } from 'node:crypto';
import { type FileHandle, lstat, open, readdir, rename, unlink, utimes, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#otel/base';
import { FILE_MODE, isErrno, readRegularFile } from '#otel/files';

const LOCK_NAME = /^lock\.[0-9a-f-]{36}$/;
const HELD = 'held\n';

/** A process that has not announced its decision after this time is suspended or stuck; it counts as running. */
const DECISION_MS = 5_000;

/** A directory that only this gateway uses. */
export interface StateLock {
  release(): Promise<void>;
}

/** Another process uses the directory. The message is one line for the operator of a gateway. */
export class StateInUseError extends Error {
  override readonly name = 'StateInUseError';
  /** Null: it is not known. */
  readonly owner: StateOwner | null;

  constructor(owner: StateOwner | null) {
    const who = owner === null ? '' : ` (pid ${owner.pid} on host ${owner.host})`;
    super(`another running gateway uses it${who}: each gateway needs its own`);
    this.owner = owner;
  }
}

/**
 * Locks a directory for this process, a gateway or a rollout: two gateways that used the same one would send each
 * other's spool and overwrite each other's drains. Each process listens on a socket in the directory. The system closes
 * it when the process ends, however that happens, and containers that share the directory find it although their
 * process ids differ. The socket of a process on another machine, through a network file system, looks like one that
 * was left behind; such a process is known by the owner's file, which it touches. Rejects while another process uses
 * the directory. Where sockets are not possible, logs that and locks nothing.
 *
 * Of several processes that start at once, exactly one succeeds. Each makes its socket visible before it looks for
 * others, so of any two at least one sees the other. A process that sees a name before its own gives up; one that sees
 * a name after its own waits until that process has decided.
 */
export async function lockState(
  directory: string,
  { pid, host, log }: { readonly pid: number; readonly host: string; readonly log: Log<'warn'> },
): Promise<StateLock> {
  await using folder = await open(directory);
  const own = `lock.${randomUUID()}`;
  const lockDirectory = { directory, folder, own, host };
  const lockSocket = new LockSocket();
  try {
    await lockSocket.open(toSocketPath(lockDirectory, `${own}.new`));
    await rename(join(directory, `${own}.new`), join(directory, own));
    const names = (await readdir(directory)).filter((name) => LOCK_NAME.test(name) && name !== own);
    await Promise.all(names.map((name) => waitForRelease(lockDirectory, name, { isFirst: own < name })));
  } catch (error) {
    await unlink(join(directory, own)).catch(() => undefined);
    lockSocket.close();
    if (error instanceof StateInUseError) throw error;
    log.warn(
      { err: error },
      'state_dir cannot be locked: a second gateway that uses it would not be noticed',
    );
    return { release: async () => undefined };
  }
  lockSocket.hold();
  const owner = await keepOwner(directory, { lock: own, pid, host });
  return {
    async release() {
      await owner.remove();
      await unlink(join(directory, own)).catch(() => undefined);
      lockSocket.close();
    },
  };
}

interface LockDirectory {
  readonly directory: string;
  /** The directory, opened. */
  readonly folder: FileHandle;
  /** The name of our lock. */
  readonly own: string;
  /** The name of this machine. */
  readonly host: string;
}

/** The path of a socket has at most 107 bytes. A longer one is shortened, which only Linux can do. */
function toSocketPath(
  { directory, folder }: Pick<LockDirectory, 'directory' | 'folder'>,
  name: string,
): string {
  const path = join(directory, name);
  return Buffer.byteLength(path) <= 100 ? path : `/proc/self/fd/${folder.fd}/${name}`;
}

/** The socket on which other processes ask whether this one runs. It does not keep the process alive. */
class LockSocket {
  readonly #server: Server = createServer((socket) => this.#receive(socket)).unref();
  readonly #waiting = new Set<Socket>();
  #isHeld = false;

  open(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ path }, resolve);
    });
  }

  /** Tells all who ask, now and later, that the directory is in use. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#waiting) socket.end(HELD);
  }

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
 * Resolves when no process listens on this socket, and removes what one left behind. Rejects with a StateInUseError if
 * a process uses the directory. `isFirst`: our own name comes before this one.
 */
async function waitForRelease(
  lockDirectory: LockDirectory,
  name: string,
  { isFirst }: { isFirst: boolean },
): Promise<void> {
  const { directory, own, host } = lockDirectory;
  const found = await askSocket(toSocketPath(lockDirectory, name), { isFirst });
  if (found === 'left') return;
  const last = await readOwner(directory);
  const owner = last?.lock === name ? last : null;
  if (found === 'running') throw new StateInUseError(owner);
  const isElsewhere = owner !== null && owner.host !== host;
  if (isElsewhere && (await isTouched(directory, join(directory, own)))) throw new StateInUseError(owner);
  // Names are never reused, and a process listens before others can see its name.
  await unlink(join(directory, name)).catch(() => undefined);
}

function askSocket(path: string, { isFirst }: { isFirst: boolean }): Promise<'running' | 'stale' | 'left'> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    let deadline: NodeJS.Timeout | undefined;
    const end = (found: 'running' | 'stale' | 'left') => {
      clearTimeout(deadline);
      socket.destroy();
      resolve(found);
    };
    deadline = setTimeout(() => end('running'), DECISION_MS);
    socket
      .once('connect', () => {
        if (!isFirst) end('running');
      })
      .once('data', () => end('running'))
      .once('close', () => end('left'))
      .once('error', (error) => {
        if (isErrno(error, 'ECONNREFUSED') || isErrno(error, 'ENOENT')) end('stale');
        // The backlog of the socket is full.
        else if (isErrno(error, 'EAGAIN')) end('running');
        else if (isErrno(error, 'ECONNRESET') || isErrno(error, 'EPIPE')) end('left');
        else {
          clearTimeout(deadline);
          reject(error);
        }
      });
  });
}

const FILE_NAME = 'owner.json';
const MAX_BYTES = 4_096;

/** How often the owner touches the file. */
const TOUCH_MS = 2_000;
/** A file that was not touched for this long has no running owner. */
const STALE_MS = 6_000;
const POLL_MS = 500;

/** The process that has locked a directory. */
interface StateOwner {
  /** The name of its lock. */
  readonly lock: string;
  readonly pid: number;
  /** The name of its machine or container. */
  readonly host: string;
}

/** Returns who has locked the directory; null if that is not known. */
async function readOwner(directory: string): Promise<StateOwner | null> {
  try {
    const bytes = await readRegularFile(join(directory, FILE_NAME), MAX_BYTES);
    return parseOwner(JSON.parse(bytes.toString('utf8')));
  } catch {
    return null; // absent or damaged: it only tells who holds the lock
  }
}

function parseOwner(value: unknown): StateOwner | null {
  if (typeof value !== 'object' || value === null) return null;
  const { lock, pid, host } = value as Readonly<Record<string, unknown>>;
  if (typeof lock !== 'string' || typeof pid !== 'number' || !Number.isSafeInteger(pid)) return null;
  return typeof host === 'string' && /^[\w.:-]{1,255}$/.test(host) ? { lock, pid, host } : null;
}

/**
 * Writes the file of the owner, and touches it from time to time, so that processes on other machines see that it runs.
 * Never rejects: without the file, the lock still holds on this machine.
 */
async function keepOwner(
  directory: string,
  owner: StateOwner,
): Promise<{ readonly remove: () => Promise<void> }> {
  const path = join(directory, FILE_NAME);
  await writeFile(path, `${JSON.stringify(owner)}\n`, { mode: FILE_MODE }).catch(() => undefined);
  const timer = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, TOUCH_MS);
  timer.unref();
  return {
    async remove() {
      clearInterval(timer);
      const last = await readOwner(directory);
      if (last?.lock === owner.lock) await unlink(path).catch(() => undefined);
    },
  };
}

/**
 * Whether the owner still runs on its own machine, which shares the directory through a network file system: it touches
 * the file. Takes up to STALE_MS if the owner has just ended. `reference`: the path of a file that was just created
 * there, so that both times are those of the file server.
 */
async function isTouched(directory: string, reference: string): Promise<boolean> {
  const path = join(directory, FILE_NAME);
  const startedMs = performance.now();
  const [created, first] = await Promise.all([changedAtMs(reference), changedAtMs(path)]);
  if (created === null || first === null) return false;
  for (;;) {
    const latest = await changedAtMs(path);
    if (latest === null) return false;
    if (latest !== first) return true;
    if (created + (performance.now() - startedMs) - first > STALE_MS) return false;
    await sleep(POLL_MS);
  }
}

/** The time of the last change of a file's data or attributes: milliseconds of the file server's clock. Null: no file. */
async function changedAtMs(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).ctimeMs;
  } catch {
    return null;
  }
}
