import type { StateFile } from '#state-dir';
import { parseBackground, type StoredBackground } from './background-file.ts';

/** How often the file is written at most. Each write waits for the disk. */
const WRITE_INTERVAL_MS = 1_000;

/** Keeps the file as it should be: writes it soon after each change, at most once per second, and again if that failed. */
export class BackgroundStore {
  readonly #file: StateFile<StoredBackground>;
  readonly #print: () => string;
  #latestWrite = Promise.resolve(true);
  #nextWrite = Promise.withResolvers<boolean>();
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
    this.#timer ??= setTimeout(() => void this.#write(), inMs).unref();
  }

  /** Resolves when what has changed was written, with whether it is on disk. */
  untilStored(): Promise<boolean> {
    return this.#nextWrite.promise;
  }

  /** Writes the last content. Returns whether it is on disk. */
  async close(): Promise<boolean> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    if (this.#isStale) await this.#write();
    return await this.#latestWrite;
  }

  async #write(): Promise<void> {
    this.#timer = undefined;
    this.#lastMs = performance.now();
    this.#isStale = false;
    const { promise, resolve } = this.#nextWrite;
    this.#latestWrite = promise;
    this.#nextWrite = Promise.withResolvers();
    const isStored = await this.#file.write(this.#print()).then(
      () => true,
      () => false, // the file tells of it
    );
    if (!isStored) this.changed();
    resolve(isStored);
  }
}
