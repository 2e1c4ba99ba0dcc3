import { findPortHolder } from './port-holder.ts';

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

/** OpenSSL's own messages say little. None of these quotes a file. */
const PEM_PROBLEMS: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key does not belong to the certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'this is not PEM',
  ERR_OSSL_UNSUPPORTED: 'the key is not a private key in PEM',
  ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED: 'the key is encrypted: give it without a password',
};

/** Uses certificates and keys by `action`. What it throws becomes an UnusableSettingError. `what` names the files. */
export function tryCertificates<T>(what: string, action: () => T): T {
  try {
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
