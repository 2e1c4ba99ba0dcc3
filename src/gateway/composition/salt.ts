import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno, readRegularFile } from '#otel/files';

const SALT_BYTES = 32;
/** Room for the salt and white space that an editor added. */
const MAX_FILE_BYTES = 4096;
const SALT_TEXT = /^[0-9a-f]{64}$/;

/** The salt file holds no salt. The message is one line for the operator and does not quote the file. */
export class SaltFileError extends Error {
  override readonly name = 'SaltFileError';

  constructor(path: string) {
    super(
      `${path} holds no salt (64 lower-case hex digits): restore it, or remove it for a new one, ` +
        'with which prefix hashes do not compare to earlier ones',
    );
  }
}

/**
 * The salt of the prefix hashes: the UTF-8 of `hashSalt`, or if that is unset or empty, of the text in
 * `stateDir/salt`, which is created on first start. Trailing white space is not part of the salt, so that the file's
 * text given as `hashSalt` makes the same hashes.
 *
 * Processes that start at the same time on one directory get the same salt. A file that holds no salt is never
 * replaced: earlier records could no longer be compared with later ones, unnoticed.
 *
 * @throws {SaltFileError} if the file exists and holds no salt; an OddFileError if it is not a regular file; else the
 *   file system's error
 */
export async function loadSalt(stateDir: string, hashSalt?: string): Promise<Buffer> {
  const configured = hashSalt?.trimEnd() ?? '';
  if (configured !== '') return Buffer.from(configured);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const path = join(stateDir, 'salt');
  return Buffer.from((await readSalt(path)) ?? (await createSalt(stateDir, path)));
}

async function readSalt(path: string): Promise<string | undefined> {
  let text: string;
  try {
    text = (await readRegularFile(path, MAX_FILE_BYTES)).toString('latin1').trimEnd();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  if (!SALT_TEXT.test(text)) throw new SaltFileError(path);
  return text;
}

/** Creates the file atomically and reads it back, since another process may have been first. */
async function createSalt(stateDir: string, path: string): Promise<string> {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    await writeDurably(draft, `${randomBytes(SALT_BYTES).toString('hex')}\n`);
    // Unlike rename, link fails if the file exists.
    await link(draft, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await rm(draft, { force: true });
  }
  await syncDirectory(stateDir);
  const salt = await readSalt(path);
  if (salt === undefined) throw new SaltFileError(path);
  return salt;
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}

/** Makes the new directory entry survive a power cut. */
async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync();
}
