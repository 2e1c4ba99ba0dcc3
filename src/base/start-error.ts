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

/** The configuration file, or a file that it names, is missing or cannot be used: exit code 2, as for a wrong key. */
export class UnusableFileError extends StartError {
  constructor(message: string, cause?: unknown) {
    super(message, cause);
    this.name = 'UnusableFileError';
  }
}

/** Awaits `promise`. A rejection becomes a StartError of one line: what failed, and the system's reason. */
export async function orStartError<T>(what: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw new StartError(`${what}: ${reasonOf(error)}`, error);
  }
}

/** What system errors mean, and what to do. */
const REASONS: ReadonlyMap<unknown, string> = new Map([
  [
    'EADDRINUSE',
    'the port is already in use: stop the process that listens there, or configure another port',
  ],
  ['EADDRNOTAVAIL', 'this machine does not have the address: configure one that it has, or 0.0.0.0 for all'],
  ['ENOTFOUND', 'the host name does not resolve: configure an address of this machine'],
  ['EACCES', 'permission denied'],
  ['EROFS', 'the file system is read-only: configure a directory that can be written'],
  ['ENOTDIR', 'a part of the path is a file: configure a directory'],
  ['EEXIST', 'it is a file: configure a directory'],
  ['ENOSPC', 'the disk is full'],
]);

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const reason = 'code' in error ? REASONS.get(error.code) : undefined;
  return reason ?? error.message.split('\n', 1)[0] ?? '';
}
