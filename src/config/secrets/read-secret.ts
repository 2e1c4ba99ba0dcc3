import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { toFileProblem } from '#base';

/** A larger file is not a secret. */
const MAX_FILE_BYTES = 4096;

/** A secret is given in a way that cannot be used. `message` is one line for the operator and does not contain it. */
export class SecretError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SecretError';
  }
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A secret from the environment. */
export interface GivenSecret {
  /** As given, without the line break that ends a file; empty if it is not set. */
  readonly text: string;
  /** Where it comes from, for messages. */
  readonly source: string;
  readonly isFile: boolean;
}

/** Reads the variable `name`, or the file that `name_FILE` names. An empty variable counts as unset. */
export async function readSecret(name: string, env: Environment): Promise<GivenSecret> {
  const given = env[name] ?? '';
  const fileName = `${name}_FILE`;
  const path = env[fileName] ?? '';
  if (path === '') return { text: given, source: name, isFile: false };
  if (given !== '') throw new SecretError(`${name} and ${fileName} are both set: set only one of them`);
  // Not the path: the variable may hold the secret itself by mistake.
  const source = `the file that ${fileName} names`;
  return { text: await readSecretFile(path, source), source, isFile: true };
}

/**
 * Reads a file that holds a secret, without the line break at its end. `source` names the file in messages. Rejects with
 * a SecretError if the file cannot be read, is not a regular file, is not text in UTF-8, is empty or has more than 4 KiB.
 */
export async function readSecretFile(path: string, source: string): Promise<string> {
  const text = (await readSmallFile(path, source)).replace(/\r?\n$/, '');
  if (text.trim() === '') throw new SecretError(`${source} is empty`);
  return text;
}

/** Opening a FIFO would wait for its writer, and reading a device may never end, so only regular files are read. */
async function readSmallFile(path: string, source: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new SecretError(`${source} is not a regular file`);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_FILE_BYTES + 1), { position: 0 });
    if (bytesRead > MAX_FILE_BYTES) throw new SecretError(`${source} is larger than ${MAX_FILE_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, bytesRead));
  } catch (error) {
    if (error instanceof SecretError) throw error;
    if (error instanceof TypeError) throw new SecretError(`${source} is not text in UTF-8`);
    throw new SecretError(`${source} cannot be read: ${toFileProblem(error)}`, error);
  }
}
