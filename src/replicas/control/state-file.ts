import { isUtf8 } from 'node:buffer';
import { mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno, OddFileError, openRegularFile, readRegularFile } from '#otel/disk/regular-file.ts';

/** Where it is said that a file is damaged. A pino logger fits. */
export interface DamageLog {
  error(fields: object, message: string): void;
}

/** What the text of a state file says. */
export interface Parsed<T> {
  readonly value: T;
  /** What of it could not be read, by name; empty if all is well. */
  readonly unreadable: readonly string[];
}

/** A small file in state_dir that is always whole: what it was, or what it is to be. */
export interface StateFile<T> {
  /**
   * What it says; null if it was never written, or nothing of it can be read. Where it is damaged, it is set aside
   * under another name, the log says so, and what could be read of it is not on disk until it is written. `parse`
   * gives null for a text that says nothing. Rejects with the system's error.
   */
  read(parse: (text: string) => Parsed<T> | null): Promise<{ value: T | null; isDamaged: boolean }>;
  /**
   * Replaces it; resolves once this text, or one given later, is on disk. Rejects with the system's error. While one
   * is being written, of those given only the last is written next.
   */
  write(text: string): Promise<void>;
}

/** No state file comes near it. */
const MAX_BYTES = 64 * 1024 ** 2;

/** How many damaged files of a name stay. */
const MAX_ASIDE = 3;

/** How much of what could not be read is named. */
const MAX_NAMED = { names: 20, chars: 120 } as const;

/** Creates the access to a file; it is made when it is first written. */
export function createStateFile<T>(path: string, log: DamageLog): StateFile<T> {
  let lastWrite: Promise<void> = Promise.resolve();
  let next: { text: string; readonly written: Promise<void> } | null = null;

  return {
    async read(parse) {
      const content = await readContent(path);
      if (content === null) return { value: null, isDamaged: false };
      const { text, isWhole } = content;
      const parsed = text === null ? null : parse(text);
      const { value = null, unreadable = [] } = parsed ?? {};
      if (parsed !== null && isWhole && unreadable.length === 0) return { value, isDamaged: false };
      const aside = await setAside(path);
      const lost = parsed === null ? 'all of it' : toNames(unreadable);
      log.error(
        { file: path, set_aside: aside, lost },
        'a state file is damaged: set aside, what it said is lost',
      );
      return { value, isDamaged: true };
    },
    write(text) {
      if (next !== null) {
        next.text = text;
        return next.written;
      }
      const written = lastWrite.then(() => {
        const latest = next?.text ?? text;
        next = null;
        return writeAtomically(path, latest);
      });
      next = { text, written };
      lastWrite = written.catch(() => undefined);
      return written;
    },
  };
}

function toNames(unreadable: readonly string[]): readonly string[] {
  return unreadable.slice(0, MAX_NAMED.names).map((name) => name.slice(0, MAX_NAMED.chars));
}

/** Null: there is nothing. Without a text: it is no file that could be read to its end. */
async function readContent(path: string): Promise<{ text: string | null; isWhole: boolean } | null> {
  try {
    const bytes = await readRegularFile(path, MAX_BYTES);
    return { text: bytes.toString('utf8'), isWhole: isUtf8(bytes) };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    if (error instanceof OddFileError) return { text: null, isWhole: false };
    throw error;
  }
}

/** Gives it another name, and removes all but the latest that have such a name; returns the new one. */
async function setAside(path: string): Promise<string> {
  const marked = `${basename(path)}.damaged-`;
  const aside = marked + new Date().toISOString().replace(/[-:]/g, '');
  await rename(path, join(dirname(path), aside));
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(marked)).sort();
  for (const name of names.slice(0, -MAX_ASIDE)) {
    await unlink(join(dirname(path), name)).catch(() => undefined); // what is no file stays
  }
  return aside;
}

async function writeAtomically(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  {
    await using file = await openRegularFile(temporary, 'replace', 0o600);
    await file.writeFile(text);
    await file.sync();
  }
  await rename(temporary, path);
  await using directory = await open(dirname(path), 'r');
  await directory.sync();
}
