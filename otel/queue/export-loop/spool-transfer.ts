import type { Spool, SpooledBatch } from '#otel/disk';
import type { ExportCounters } from '../export-stats.ts';
import type { QueuedRecord, RecordQueue } from '../record-queue.ts';

/** What records are moved between. */
export interface SpoolTransferCollaborators {
  readonly spool: Spool;
  readonly queue: RecordQueue;
  readonly counters: ExportCounters;
}

/**
 * Moves records between the spool and the queue. After a start, records of earlier runs go to the head of the queue,
 * file by file, as far as there is room. At shutdown, the queue goes to the spool.
 */
export class SpoolTransfer {
  readonly #collaborators: SpoolTransferCollaborators;
  #batch: SpooledBatch | undefined;
  /** The records of `#batch` that are not settled; the first `#restoredAtHead` of them are in the queue. */
  #unsettled: readonly QueuedRecord[] = [];
  #restoredAtHead = 0;
  /** Set by `storeQueue`: a file whose reading has taken longer than the shutdown stays in the spool. */
  #isOver = false;

  constructor(collaborators: SpoolTransferCollaborators) {
    this.#collaborators = collaborators;
  }

  /** How many of the records at the head of the queue are from the spool. */
  get restoredAtHead(): number {
    return this.#restoredAtHead;
  }

  /** Moves the next records of the spool into the queue, unless it still holds earlier ones or is full. */
  async restoreNext(): Promise<void> {
    const { spool, queue, counters } = this.#collaborators;
    if (this.#restoredAtHead > 0) return;
    while (this.#unsettled.length === 0) {
      const batch = await spool.next();
      if (batch === undefined || this.#isOver) return;
      this.#batch = batch;
      const { encodedSpans, damagedCount } = batch;
      counters.add('unreadable', damagedCount);
      // They are sent at once, without waiting for the interval.
      this.#unsettled = encodedSpans.map((encodedSpan) => ({
        encodedSpan,
        queuedAtMs: Number.NEGATIVE_INFINITY,
      }));
      if (encodedSpans.length === 0) await batch.settle(0);
    }
    this.#restoredAtHead = queue.prepend(this.#unsettled);
    counters.add('restored', this.#restoredAtHead);
  }

  /** The first `count` records of the queue were delivered or rejected, and removed from it. */
  async settle(count: number): Promise<void> {
    const restoredCount = Math.min(count, this.#restoredAtHead);
    if (restoredCount === 0) return;
    this.#restoredAtHead -= restoredCount;
    this.#unsettled = this.#unsettled.slice(restoredCount);
    await this.#batch?.settle(restoredCount);
  }

  /**
   * Empties the queue into the spool, and restores nothing from then on. Restored records are still in their file; what
   * cannot be written stays in the queue.
   */
  async storeQueue(): Promise<void> {
    const { spool, queue, counters } = this.#collaborators;
    this.#isOver = true;
    queue.remove(this.#restoredAtHead);
    counters.add('spooled', this.#restoredAtHead);
    this.#restoredAtHead = 0;
    if (queue.size === 0) return;
    const storedCount = await spool.put(queue.peek(queue.size).map(({ encodedSpan }) => encodedSpan));
    queue.remove(storedCount);
    counters.add('spooled', storedCount);
  }
}
