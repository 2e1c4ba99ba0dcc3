import { closeSync, existsSync, openSync, rmSync } from 'node:fs';

/**
 * A file that is there while a gateway has records for its history. It is made before the first request, sooner than the
 * database is open: a gateway that is killed in between has left out its records, too.
 */
export class RunMarker {
  readonly #path: string;

  /** `path`: of the database. */
  constructor(path: string) {
    this.#path = `${path}.run`;
  }

  /** Makes it. Returns whether an earlier run has left it: its last records may be missing. */
  begin(): boolean {
    const wasLeft = existsSync(this.#path);
    try {
      closeSync(openSync(this.#path, 'a', 0o600));
    } catch {
      // The database cannot be written then either, which is told.
    }
    return wasLeft;
  }

  /** All records are written. */
  end(): void {
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // The next start then says more than it must.
    }
  }
}
