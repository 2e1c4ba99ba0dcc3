import { isUtf8 } from 'node:buffer';
import { mkdir, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Log } from '#otel/base';
import { isErrno, OddFileError, readRegularFile, writeDurably } from '#otel/files';

/** Called after each write of a state file, with the error of the system; null: it is on disk. */
export type OnStateWrite = (path: string, error: unknown) => void;

/** The content of a state file. */
export interface Parsed<T> {
  readonly value: T;
  /** The names of entries that are illegible. */
  readonly unreadable: readonly string[];
}

/** A small file in state_dir that is replaced as a whole, so that it never holds a part of a write. */
export interface StateFile<T> {
  /**
   * Reads the file. `value` is null if it was never written or is illegible. A damaged file is renamed and the log says
   * so; the legible part of it is on disk again only when it is written. `parse` returns null for an illegible text.
   * Rejects with the system's error.
   */
  read(parse: (text: string) => Parsed<T> | null): Promise<{ value: T | null; isDamaged: boolean }>;
  /**
   * Replaces the file. Resolves once this text, or a later one, is on disk; rejects with the system's error. Of several
   * texts given during a write, only the last is written.
   */
  write(text: string): Promise<void>;
}

/** Far more than any state file needs. */
const MAX_BYTES = 64 * 1024 ** 2;

/** How many damaged copies of a file are kept. */
const MAX_ASIDE = 3;

/** How many illegible entries the log names, and how much of each name. */
const MAX_NAMED = { names: 20, chars: 120 } as const;

/** Creates the access to a file, which exists once it is first written. */
export function createStateFile<T>(
  path: string,
  log: Log<'error'>,
  onWrite: OnStateWrite = () => undefined,
): StateFile<T> {
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
        'a state file is damaged: it was renamed, and some of its content is lost',
      );
      return { value, isDamaged: true };
    },
    write(text) {
      if (next !== null) {
        next.text = text;
        return next.written;
      }
      const written = lastWrite.then(async () => {
        const latest = next?.text ?? text;
        next = null;
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeDurably(path, Buffer.from(latest), '.tmp');
      });
      next = { text, written };
      lastWrite = written.then(
        () => onWrite(path, null),
        (error: unknown) => onWrite(path, error),
      );
      return written;
    },
  };
}

function toNames(unreadable: readonly string[]): readonly string[] {
  return unreadable.slice(0, MAX_NAMED.names).map((name) => name.slice(0, MAX_NAMED.chars));
}

/** Null: there is no file. A null text: it is not a regular file, or it is too large. */
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

/** Renames a damaged file, and removes all but the latest damaged copies. Returns the new name. */
async function setAside(path: string): Promise<string> {
  const marked = `${basename(path)}.damaged-`;
  const aside = marked + new Date().toISOString().replace(/[-:]/g, '');
  await rename(path, join(dirname(path), aside));
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(marked)).sort();
  for (const name of names.slice(0, -MAX_ASIDE)) {
    await unlink(join(dirname(path), name)).catch(() => undefined); // a directory of that name stays
  }
  return aside;
}
