import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno, readRegularFile } from '#otel/disk/regular-file.ts';

const SALT_BYTES = 32;
/** The salt, and whatever white space an editor put behind it. */
const MAX_FILE_BYTES = 4096;
const SALT_TEXT = /^[0-9a-f]{64}$/;

/** There is a salt file, but no salt in it. The message is one line for the operator and does not quote the file. */
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
 * The salt of the prefix hashes: the UTF-8 of `hashSalt`, or where that is unset or empty, of the text in
 * `stateDir/salt`, which is made on first start. Trailing white space belongs to neither, so that the file's text
 * given as `hashSalt` makes the same hashes.
 *
 * Of several processes that start at once on one directory all get the same salt. A file that holds no salt is
 * never replaced: records of before could not be compared with those of after, and nobody would have been told.
 *
 * @throws {SaltFileError} if the file is there and holds no salt; an OddFileError if it is no file; else the file
 *   system's error
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

/** Makes the file as a whole or not at all, and reads it back: another process may have been first. */
async function createSalt(stateDir: string, path: string): Promise<string> {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    await writeDurably(draft, `${randomBytes(SALT_BYTES).toString('hex')}\n`);
    // Unlike rename, link fails where the file is there already.
    await link(draft, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await unlink(draft).catch(ignoreMissing);
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

/** Makes the new name survive a power cut, too. */
async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync();
}

function ignoreMissing(error: unknown): void {
  if (!isErrno(error, 'ENOENT')) throw error;
}
