import { readFileSync, rmSync, writeFileSync } from 'node:fs';

/** What an earlier run has left behind: `killed`: its last records may be missing. */
export type LeftMark = 'none' | 'killed' | { readonly offSinceMs: number };

/**
 * A file that is there while a gateway has records for its history. It is made before the first request, sooner than the
 * database is open: a gateway that is killed in between has left out its records, too. While the history is off the file
 * says since when, over any restart: what ends in that time is missing.
 */
export class RunMarker {
  readonly #path: string;

  /** `path`: of the database. */
  constructor(path: string) {
    this.#path = `${path}.run`;
  }

  /** Makes it. Returns what was there. */
  begin(): LeftMark {
    const left = this.read();
    this.#write('');
    return left;
  }

  /** What is there now. */
  read(): LeftMark {
    try {
      const offSinceMs = /^off (\d{1,15})$/.exec(readFileSync(this.#path, 'latin1').trim())?.[1];
      return offSinceMs === undefined ? 'killed' : { offSinceMs: Number(offSinceMs) };
    } catch {
      return 'none';
    }
  }

  /** All records are written, and no further ones are. */
  off(sinceMs: number): void {
    this.#write(`off ${sinceMs}\n`);
  }

  /** All records are written. */
  end(): void {
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // The next start then says more than it must.
    }
  }

  #write(text: string): void {
    try {
      writeFileSync(this.#path, text, { mode: 0o600 });
    } catch {
      // The database cannot be written then either, which is told.
    }
  }
}
