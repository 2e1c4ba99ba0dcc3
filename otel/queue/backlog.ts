import type { Spool, SpooledBatch } from '../disk/spool.ts';
import type { ExportCounters } from './export-stats.ts';
import type { QueuedRecord, RecordQueue } from './record-queue.ts';

/** What the backlog moves records between. */
export interface BacklogCollaborators {
  readonly spool: Spool;
  readonly queue: RecordQueue;
  readonly counters: ExportCounters;
}

/**
 * The records of earlier runs: file by file from the spool to the head of the queue, before all new ones, as far
 * as there is room; and at the end from the queue to the spool.
 */
export class Backlog {
  readonly #with: BacklogCollaborators;
  #batch: SpooledBatch | undefined;
  /** The records of `#batch` that are not settled; the first `#atHead` of them are in the queue. */
  #unsettled: readonly QueuedRecord[] = [];
  #atHead = 0;

  constructor(collaborators: BacklogCollaborators) {
    this.#with = collaborators;
  }

  /** How many of the records at the head of the queue are from the spool. */
  get atHead(): number {
    return this.#atHead;
  }

  /** Puts the next records of the spool into the queue, unless some are there already or there is no room. */
  async refill(): Promise<void> {
    if (this.#atHead > 0) return;
    while (this.#unsettled.length === 0) {
      this.#batch = await this.#with.spool.next();
      if (this.#batch === undefined) return;
      const { spans, brokenCount } = this.#batch;
      this.#with.counters.unreadable += brokenCount;
      // They have waited long enough: no interval holds them.
      this.#unsettled = spans.map((line) => ({ line, queuedAtMs: Number.NEGATIVE_INFINITY }));
      if (spans.length === 0) await this.#batch.settle(0);
    }
    this.#atHead = this.#with.queue.prepend(this.#unsettled);
    this.#with.counters.restored += this.#atHead;
  }

  /** The first `count` records of the queue have been taken off it, delivered or refused. */
  async settle(count: number): Promise<void> {
    const restoredCount = Math.min(count, this.#atHead);
    if (restoredCount === 0) return;
    this.#atHead -= restoredCount;
    this.#unsettled = this.#unsettled.slice(restoredCount);
    await this.#batch?.settle(restoredCount);
  }

  /** Empties the queue into the spool. What is in a file of it already stays there; what cannot be stored, in the queue. */
  async putAside(): Promise<void> {
    const { spool, queue, counters } = this.#with;
    queue.remove(this.#atHead);
    counters.spooled += this.#atHead;
    this.#atHead = 0;
    if (queue.size === 0) return;
    const storedCount = await spool.put(queue.peek(queue.size).map(({ line }) => line));
    queue.remove(storedCount);
    counters.spooled += storedCount;
  }
}
