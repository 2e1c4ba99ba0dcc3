import type { Recording } from './recording.ts';

/** What is needed of a request's recording here. */
type Finishable = Pick<Recording, 'bodyBytes' | 'close' | 'finish'>;

/** How long a request that has ended waits for others. */
const GATHER_MS = 5;
/** So many do not wait: their records take 0.3 ms, in which nothing else happens. */
const MAX_GATHERED = 16;
/** Nor do those whose bodies are together so large: to hash 64 KiB takes 0.2 ms. */
const MAX_GATHERED_BYTES = 64 * 1024;

/**
 * Requests that are over and whose records are still to be made: several at a time, since by the next request the
 * processor's caches have lost most of the code that makes a record (docs/decisions/0017).
 */
export class PendingRecords {
  readonly #onDefect: (error: unknown) => void;
  #closed: Finishable[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  /** @param onDefect told of what is thrown while a record is made; the others are made all the same */
  constructor(onDefect: (error: unknown) => void) {
    this.#onDefect = onDefect;
  }

  /** Takes in a request that has just ended. */
  add(recording: Finishable): void {
    recording.close();
    this.#closed.push(recording);
    this.#bytes += recording.bodyBytes;
    if (this.#closed.length >= MAX_GATHERED || this.#bytes >= MAX_GATHERED_BYTES) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  /** Makes the records of all that have ended up to now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const closed = this.#closed;
    this.#closed = [];
    this.#bytes = 0;
    for (const recording of closed) {
      try {
        recording.finish();
      } catch (error) {
        this.#onDefect(error);
      }
    }
  }
}
