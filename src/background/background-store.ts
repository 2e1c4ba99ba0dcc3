import type { StateFile } from '#state-dir';
import { parseBackground, type StoredBackground } from './background-file.ts';

/** How often the file is written at most. Each write waits for the disk. */
const WRITE_INTERVAL_MS = 1_000;

/** Keeps the file as it should be: writes it soon after each change, at most once per second, and again if that failed. */
export class BackgroundStore {
  readonly #file: StateFile<StoredBackground>;
  readonly #print: () => string;
  #lastWrite: Promise<boolean> = Promise.resolve(true);
  #stored = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** Whether the file differs from what it should be. */
  #isStale = false;
  #isClosed = false;

  /** @param print the content, as of now */
  constructor(file: StateFile<StoredBackground>, print: () => string) {
    this.#file = file;
    this.#print = print;
  }

  /** What an earlier run stored. Rejects with the system's error. */
  async read(): Promise<StoredBackground> {
    const { value, isDamaged } = await this.#file.read(parseBackground);
    if (isDamaged) this.changed();
    return value ?? { responses: [], unfollowed: [] };
  }

  /** The content has changed. */
  changed(): void {
    this.#isStale = true;
    if (this.#isClosed) return;
    const inMs = Math.max(0, this.#lastMs + WRITE_INTERVAL_MS - performance.now());
    this.#timer ??= setTimeout(() => {
      this.#lastWrite = this.#write();
    }, inMs).unref();
  }

  /** Resolves when what has changed is on disk, or could not be written. */
  untilStored(): Promise<void> {
    return this.#stored.promise;
  }

  /** Writes the last content. Returns whether it is on disk. */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    return await (this.#isStale ? this.#write() : this.#lastWrite);
  }

  async #write(): Promise<boolean> {
    this.#timer = undefined;
    this.#lastMs = performance.now();
    this.#isStale = false;
    const { resolve } = this.#stored;
    this.#stored = Promise.withResolvers();
    const isStored = await this.#file.write(this.#print()).then(
      () => true,
      () => false, // the file tells of it
    );
    if (!isStored) this.changed();
    resolve();
    return isStored;
  }
}
