import type { Log } from '#otel/base';
import type { RecordQueue } from './record-queue.ts';

/** Knows whether records are dropped now, and how many were since the start. */
export class Drops {
  readonly #queue: RecordQueue;
  readonly #log: Log;
  #isGoingOn = false;
  #count = 0;
  #hasEnded = false;

  constructor(queue: RecordQueue, log: Log) {
    this.#queue = queue;
    this.#log = log;
  }

  /** Dropping is over when the queue is half empty: a full queue has single gaps all the time. */
  get isGoingOn(): boolean {
    return this.#isGoingOn;
  }

  /** How many records were dropped since the start. */
  get count(): number {
    return this.#count;
  }

  /** Records were dropped. */
  dropped(count: number): void {
    if (count === 0) return;
    this.#isGoingOn = true;
    this.#count += count;
  }

  /** Records have left the queue. */
  removed(): void {
    if (this.#queue.fill <= 0.5) this.#isGoingOn = false;
  }

  /** No more records will come: the last line about those that were dropped, which nothing else tells of any more. */
  end(): void {
    if (this.#count > 0 && !this.#hasEnded)
      this.#log.warn({ dropped: this.#count }, 'records were dropped because the queue was full');
    this.#hasEnded = true;
  }
}
