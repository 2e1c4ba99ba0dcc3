import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Environment } from './environment.ts';

/** A shorter token can be guessed. */
const MIN_TOKEN_CHARS = 16;
/** A larger file is not a secret. */
const MAX_FILE_BYTES = 4096;

/** The tokens of the admin API. Null: not set. */
export interface AdminTokens {
  /** Allows every call. */
  readonly adminToken: string | null;
  /** Allows every GET. */
  readonly readToken: string | null;
}

/** Tokens, and warnings for the operator who set them. Neither warnings nor errors contain a token. */
export interface GivenTokens {
  readonly tokens: AdminTokens;
  readonly warnings: readonly string[];
}

/** A secret is given in a way that cannot be used. `message` is one line for the operator and does not contain it. */
export class SecretError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SecretError';
  }
}

/**
 * Reads the tokens from SVC_ADMIN_TOKEN and SVC_READ_TOKEN, or from the files that SVC_ADMIN_TOKEN_FILE and
 * SVC_READ_TOKEN_FILE name. White space around a token is not part of it, because no header value can contain it there.
 * Rejects with a SecretError.
 */
export async function readAdminTokens(env: Environment): Promise<GivenTokens> {
  const [admin, read] = await Promise.all([
    readToken('SVC_ADMIN_TOKEN', env),
    readToken('SVC_READ_TOKEN', env),
  ]);
  if (admin.token !== null && admin.token === read.token) {
    throw new SecretError(
      `${admin.source} and ${read.source} hold the same token: the read-only token must be another one`,
    );
  }
  return {
    tokens: { adminToken: admin.token, readToken: read.token },
    warnings: [...admin.warnings, ...read.warnings],
  };
}

/** Reads the salt of the prefix hashes from SVC_HASH_SALT or SVC_HASH_SALT_FILE. Null: not set. Rejects with a SecretError. */
export async function readHashSalt(env: Environment): Promise<string | null> {
  const { text } = await readSecret('SVC_HASH_SALT', env);
  return text === '' ? null : text;
}

interface GivenSecret {
  /** As given, without the line break that ends a file; empty if it is not set. */
  readonly text: string;
  /** Where it comes from, for messages. */
  readonly source: string;
}

interface GivenToken {
  readonly token: string | null;
  readonly source: string;
  readonly warnings: readonly string[];
}

async function readToken(name: string, env: Environment): Promise<GivenToken> {
  const { text, source } = await readSecret(name, env);
  const token = text.trim();
  if (token === '') return { token: null, source, warnings: [] };
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new SecretError(
      `${source} can never match: it may contain only printable ASCII characters and no spaces`,
    );
  }
  const warnings = [
    ...(token === text ? [] : [`${source} has white space around it, which is ignored`]),
    ...(token.length < MIN_TOKEN_CHARS
      ? [`${source} has fewer than ${MIN_TOKEN_CHARS} characters: it can be guessed`]
      : []),
  ];
  return { token, source, warnings };
}

/** Reads the variable `name`, or the file that `name_FILE` names. An empty variable counts as unset. */
async function readSecret(name: string, env: Environment): Promise<GivenSecret> {
  const given = env[name] ?? '';
  const fileName = `${name}_FILE`;
  const path = env[fileName] ?? '';
  if (path === '') return { text: given, source: name };
  if (given !== '') throw new SecretError(`${name} and ${fileName} are both set: set only one of them`);
  // Not the path: the variable may hold the secret itself by mistake.
  const source = `the file that ${fileName} names`;
  const text = (await readSmallFile(path, source)).replace(/\r?\n$/, '');
  if (text.trim() === '') throw new SecretError(`${source} is empty`);
  return { text, source };
}

/** Opening a FIFO would wait for its writer, and reading a device may never end, so only regular files are read. */
async function readSmallFile(path: string, source: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new SecretError(`${source} is not a regular file`);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_FILE_BYTES + 1), { position: 0 });
    if (bytesRead > MAX_FILE_BYTES) throw new SecretError(`${source} is larger than ${MAX_FILE_BYTES} bytes`);
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    if (error instanceof SecretError) throw error;
    throw new SecretError(`${source} cannot be read: ${toReason(error)}`, error);
  }
}

function toReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return REASONS.get(code) ?? code;
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EACCES', 'permission denied'],
  ['ENXIO', 'it is not a regular file'],
]);
