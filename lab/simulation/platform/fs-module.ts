import { constants, readFileSync } from 'node:fs';
import type fs from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Disk, DiskError, type DiskNode } from '../engine/disk.ts';
import type { CurrentThread, SimulatedThread } from './thread.ts';

/** The longest that one call of the file system takes. */
const LONGEST_CALL_MS = 3;
/** State of gateways. Other paths are those of the sources, which are read from the real disk. */
const STATE_ROOT = '/state';

/** `node:fs/promises` of the threads that run one copy of the code. A call that the simulation does not know is refused loudly. */
export function createFsModule(current: CurrentThread): typeof fs {
  /** Does the work after a while, like the threads of libuv; not at all if the process ends before. */
  const call = <T>(name: string, work: (disk: Disk) => T): Promise<T> => {
    const thread = current();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    thread.later(`fs ${name}`, thread.chance.between(0.02, LONGEST_CALL_MS), () => {
      try {
        resolve(work(thread.machine.disk));
      } catch (error) {
        reject(error);
      }
    });
    return promise;
  };
  const known = {
    constants,
    access: (path: string) => call('access', (disk) => void disk.get(path, 'access')),
    mkdir: (path: string) => call('mkdir', (disk) => disk.makeDirectories(path)),
    readdir: (path: string) => call('readdir', (disk) => [...disk.list(path)]),
    rename: (from: string, to: string) => call('rename', (disk) => disk.rename(from, to)),
    unlink: (path: string) => call('unlink', (disk) => disk.unlink(path)),
    link: (from: string, to: string) => call('link', (disk) => disk.link(from, to)),
    stat: (path: string) => call('stat', (disk) => toStats(disk.get(path, 'stat'))),
    lstat: (path: string) => call('lstat', (disk) => toStats(disk.get(path, 'lstat'))),
    utimes: (path: string) => call('utimes', (disk) => disk.touch(disk.get(path, 'utimes'))),
    open: (path: string, flags: string | number = 'r') =>
      call('open', () => openFile(current(), path, toFlags(flags), call)),
    readFile: (path: string | URL, encoding?: BufferEncoding) =>
      call('readFile', (disk) => {
        const name = typeof path === 'string' ? path : fileURLToPath(path);
        if (!name.startsWith(STATE_ROOT)) return readFileSync(name, { encoding: encoding ?? null });
        const { content } = disk.getFile(name, 'open');
        return encoding === undefined ? Buffer.from(content) : content.toString(encoding);
      }),
    writeFile: (path: string, text: string | Uint8Array) =>
      call('writeFile', (disk) => {
        disk.checkWritable('open', path);
        const file = disk.find(path) === null ? disk.createFile(path) : disk.getFile(path, 'open');
        file.content = Buffer.from(text as string);
        disk.touch(file);
      }),
  };
  return refuseUnknown(known, 'node:fs/promises') as unknown as typeof fs;
}

/** What a program would use unseen by the simulation is an error, not a real effect. */
export function refuseUnknown<T extends object>(known: T, module: string): T {
  return new Proxy(known, {
    get(target, name, receiver) {
      // What loaders of modules ask for.
      if (typeof name === 'symbol' || name in target || name === '__esModule' || name === 'then') {
        return Reflect.get(target, name, receiver);
      }
      if (name === 'default') return receiver;
      return () => {
        throw new Error(`the simulation has no ${module} ${name}`);
      };
    },
  });
}

type Call = <T>(name: string, work: (disk: Disk) => T) => Promise<T>;

function toFlags(flags: string | number): number {
  if (typeof flags === 'number') return flags;
  const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_TRUNC } = constants;
  switch (flags) {
    case 'r':
      return O_RDONLY;
    case 'wx':
      return O_WRONLY | O_CREAT | O_EXCL;
    case 'w':
      return O_WRONLY | O_CREAT | O_TRUNC;
    default:
      throw new Error(`the simulation has no flags ${flags}`);
  }
}

/** An open file or directory. */
function openFile(thread: SimulatedThread, path: string, flags: number, call: Call): object {
  const { disk } = thread.machine;
  const writes = (flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0;
  if (disk.find(path) !== null && (flags & constants.O_EXCL) !== 0)
    throw new DiskError('EEXIST', 'open', path);
  if (writes) disk.checkWritable('open', path);
  if (disk.find(path) === null && (flags & constants.O_CREAT) !== 0) disk.createFile(path);
  const node = disk.get(path, 'open');
  if (node.kind !== 'directory') disk.getFile(path, 'open');
  const file = node.kind === 'file' ? node : null;
  if (file !== null && (flags & constants.O_TRUNC) !== 0) file.content = Buffer.alloc(0);
  const handle = {
    fd: 3,
    stat: () => call('fstat', () => toStats(node)),
    read: (target: Uint8Array, offset: number, length: number, position: number) =>
      call('read', () => {
        const part = file?.content.subarray(position, position + length) ?? Buffer.alloc(0);
        target.set(part, offset);
        return { bytesRead: part.length, buffer: target };
      }),
    writeFile: (data: string | Uint8Array) =>
      call('write', () => {
        const bytes = Buffer.from(data as string);
        if (file === null) throw new DiskError('EBADF', 'write', path);
        if (disk.fault !== 'none') {
          // A part of it may have been written.
          file.content = Buffer.concat([file.content, bytes.subarray(0, thread.chance.below(bytes.length))]);
          disk.checkWritable('write', path);
        }
        file.content = Buffer.concat([file.content, bytes]);
        disk.touch(file);
      }),
    truncate: (size: number) =>
      call('truncate', () => {
        if (file !== null) file.content = file.content.subarray(0, size);
      }),
    sync: () =>
      call('fsync', () => (disk.fault === 'failing' ? disk.checkWritable('fsync', path) : undefined)),
    async close() {
      thread.openFiles.delete(handle);
    },
    async [Symbol.asyncDispose]() {
      thread.openFiles.delete(handle);
    },
  };
  thread.openFiles.set(handle, path);
  return refuseUnknown(handle, 'FileHandle');
}

function toStats(node: DiskNode): object {
  const { kind, changedAtMs } = node;
  return {
    size: kind === 'file' ? node.content.length : 0,
    ctimeMs: changedAtMs,
    mtimeMs: changedAtMs,
    birthtimeMs: 0,
    mtime: new Date(changedAtMs),
    mode: kind === 'directory' ? 0o700 : 0o600,
    isFile: () => kind === 'file',
    isDirectory: () => kind === 'directory',
  };
}
