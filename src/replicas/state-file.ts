import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno, openRegularFile, readRegularFile } from '#otel/regular-file.ts';

/** A small file in state_dir that is always whole: what it was, or what it is to be. */
export interface StateFile {
  readonly path: string;
  /** Its text; null if it was never written. Rejects with an OddFileError or the system's error. */
  read(): Promise<string | null>;
  /**
   * Replaces it; resolves once this text, or one given later, is on disk. Rejects with the system's error. While one
   * is being written, of those given only the last is written next.
   */
  write(text: string): Promise<void>;
}

/** Tens of thousands of replicas and gateways take less. */
const MAX_BYTES = 16 * 1024 ** 2;

/** Creates the access to a file; it is made when it is first written. */
export function createStateFile(path: string): StateFile {
  let lastWrite: Promise<void> = Promise.resolve();
  let next: { text: string; readonly written: Promise<void> } | null = null;

  return {
    path,
    async read() {
      try {
        return (await readRegularFile(path, MAX_BYTES)).toString('utf8');
      } catch (error) {
        if (isErrno(error, 'ENOENT')) return null;
        throw error;
      }
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
