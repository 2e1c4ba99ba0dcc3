import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';
/**
 * The gateway or a sub-command cannot start for a reason outside the configuration, such as a port in use or an
 * unwritable state_dir. `message` is one line for the operator; `cause` may hold the system's error.
 */
export class StartError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StartError';
  }
}

/**
 * What the operator gave is missing or cannot be used: the configuration file, a file that it or the command line names,
 * a variable. The exit code is 2, as for a wrong key.
 */
export class UnusableSettingError extends StartError {
  override readonly name = 'UnusableSettingError';
}

/** Awaits `promise`. A rejection becomes a StartError of one line: what failed, and the system's reason. */
export async function orStartError<T>(what: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw new StartError(`${what}: ${await reasonOf(error)}`, error);
  }
}

type Pem = string | null | undefined;

/** OpenSSL's own messages say little. None of these quotes a file. */
const PEM_PROBLEMS: Readonly<Record<string, string>> = {
  ERR_OSSL_PEM_NO_START_LINE: 'this is not PEM',
  ERR_OSSL_UNSUPPORTED: 'the key is not a private key in PEM',
  ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED: 'the key is encrypted: give it without a password',
};

/**
 * Uses certificates and keys by `action`. What it throws becomes an UnusableSettingError. `what` names the files. OpenSSL
 * takes a cert and a key of two algorithms for halves of two pairs, with which every handshake fails: that is looked at here.
 */
export function tryCertificates<T>(what: string, action: () => T, cert?: Pem, key?: Pem): T {
  try {
    if (cert != null && key != null && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      throw new Error('the key does not belong to the certificate');
    return action();
  } catch (error) {
    const { code = 'unusable', message } = error as NodeJS.ErrnoException;
    throw new UnusableSettingError(`${what}: ${PEM_PROBLEMS[code] ?? message}`, error);
  }
}

/** What system errors mean, and what to do. */
const REASONS: ReadonlyMap<unknown, string> = new Map([
  ['EADDRNOTAVAIL', 'this machine does not have the address: configure one that it has, or 0.0.0.0 for all'],
  ['ENOTFOUND', 'the host name does not resolve: configure an address of this machine'],
  ['EACCES', 'permission denied'],
  ['EROFS', 'the file system is read-only: configure a directory that can be written'],
  ['ENOTDIR', 'a part of the path is a file: configure a directory'],
  ['EEXIST', 'it is a file: configure a directory'],
  ['ENOSPC', 'the disk is full'],
]);

async function reasonOf(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, port } = error as NodeJS.ErrnoException & { readonly port?: number };
  if (code === 'EADDRINUSE') {
    const holder = port === undefined ? null : await findPortHolder(port);
    return `the port is already in use${holder === null ? ': stop the process that listens there' : ` by ${holder}: stop it`}, or configure another port`;
  }
  const reason = REASONS.get(code);
  return reason ?? error.message.split('\n', 1)[0] ?? '';
}

/** TCP_LISTEN in /proc/net/tcp (Linux, include/net/tcp_states.h). */
const LISTENING = '0A';
/** More of a name says no more. */
const MAX_NAME_CHARS = 40;

/**
 * The process that listens on a port of this machine, such as `node main.ts (process 4711)`. Null where that cannot be
 * known: on other systems than Linux, and of a process of another user.
 */
export async function findPortHolder(port: number): Promise<string | null> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readOrEmpty));
  const sockets = new Set(
    tables.flatMap((table) => findListeners(table, port)).map((inode) => `socket:[${inode}]`),
  );
  if (sockets.size === 0) return null;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (await hasSocket(pid, sockets)) return `${await nameOf(pid)} (process ${pid})`;
  }
  return null;
}

/** The inodes of the sockets that listen on a port: columns 2, 4 and 10 of the table. */
export function findListeners(table: string, port: number): readonly string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  return table.split('\n').flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    const isListener = columns[1]?.endsWith(`:${hexPort}`) === true && columns[3] === LISTENING;
    return isListener && columns[9] !== undefined ? [columns[9]] : [];
  });
}

async function hasSocket(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const descriptors = await readdir(folder).catch(() => []);
  const targets = await Promise.all(descriptors.map((each) => readlink(`${folder}/${each}`).catch(() => '')));
  return targets.some((target) => sockets.has(target));
}

/** The program, and the script that it runs. Never further arguments: they may hold secrets. */
async function nameOf(pid: string): Promise<string> {
  const [program = '', script = ''] = (await readOrEmpty(`/proc/${pid}/cmdline`)).split('\0');
  const words = [program, /^[^-].*\.\w+$/.test(script) ? script : ''].filter((word) => word !== '');
  const name = words.map((word) => basename(word)).join(' ');
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_NAME_CHARS) || 'a program';
}

async function readOrEmpty(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}
