import { open } from 'node:fs/promises';
import { StartError, UnusableSettingError } from '#base';
import { type ParsedJwks, parseJwks } from './jwks.ts';

/** Why keys could not be read, as a few words for the operator. */
export class JwksError extends Error {
  /** @param reason without anything that was read */
  constructor(reason: string, cause?: unknown) {
    super(reason, { cause });
    this.name = 'JwksError';
  }
}

/** Issuers have a few keys of at most 3 KB with their certificates. */
const MAX_JWKS_BYTES = 256 * 1024;

/** For the whole answer, from the connection on. */
const READ_TIMEOUT_MS = 5_000;

/** Whether the keys come from a server, not from a file. */
export function isRemote(source: string): boolean {
  return /^https?:\/\//i.test(source);
}

/** A source as operators may see it: without a query, which may hold a secret. */
export function toShownSource(source: string): string {
  return isRemote(source) ? source.replace(/\?.*$/s, '') : source;
}

/**
 * Reads a key set from a URL, or from a file. Takes at most 5 s and 256 KiB, and follows no redirect. Rejects with a
 * JwksError.
 */
export async function readJwks(source: string): Promise<ParsedJwks> {
  const bytes = await (isRemote(source) ? fetchBytes(source) : readBytes(source));
  const parsed = parseJwks(bytes.toString('utf8'));
  if (parsed === null) throw new JwksError('not a JSON Web Key Set');
  if (parsed.keys.length === 0) throw new JwksError('no key that verifies tokens');
  return parsed;
}

/**
 * Reads a key set that must be there now. Rejects with an UnusableSettingError for a file, and with a StartError for a
 * server.
 */
export async function requireJwks(source: string): Promise<ParsedJwks> {
  try {
    return await readJwks(source);
  } catch (error) {
    if (!(error instanceof JwksError)) throw error;
    const problem = `jwt.jwks: cannot use ${toShownSource(source)} (${error.message})`;
    throw isRemote(source) ? new StartError(problem, error) : new UnusableSettingError(problem, error);
  }
}

async function fetchBytes(url: string): Promise<Buffer> {
  const signal = AbortSignal.timeout(READ_TIMEOUT_MS);
  try {
    const response = await fetch(url, {
      signal,
      redirect: 'manual',
      headers: { accept: 'application/json' },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new JwksError(`status ${response.status}`);
    }
    return await collect(response.body ?? []);
  } catch (error) {
    if (error instanceof JwksError) throw error;
    throw new JwksError(signal.aborted ? 'no answer in time' : toReason(error), error);
  }
}

/** Only a file: to read a pipe could take forever. */
async function readBytes(path: string): Promise<Buffer> {
  try {
    await using file = await open(path, 'r');
    const stats = await file.stat();
    if (!stats.isFile()) throw new JwksError('not a file');
    return await collect(file.createReadStream({ autoClose: false }));
  } catch (error) {
    throw error instanceof JwksError ? error : new JwksError(toReason(error), error);
  }
}

/** Stops at the limit: what a server sends may have no end. */
async function collect(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const kept: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > MAX_JWKS_BYTES) throw new JwksError(`more than ${MAX_JWKS_BYTES / 1024} KiB`);
    kept.push(chunk);
  }
  return Buffer.concat(kept);
}

/** The code of the system or of TLS, which `fetch` has in its cause. Messages may quote what was read. */
function toReason(error: unknown): string {
  const errors = error instanceof Error ? [error, error.cause] : [];
  const codes = errors.map((each) => (each instanceof Error && 'code' in each ? String(each.code) : null));
  return codes.find((code) => code !== null) ?? 'the connection failed';
}
