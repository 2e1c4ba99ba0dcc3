import type { TelemetryLog } from '#otel/base';
import type { RecordQueue } from './record-queue.ts';

/** Logs one line when records begin to be dropped, and one with their number when that ends. */
export class DropLog {
  readonly #queue: RecordQueue;
  readonly #log: TelemetryLog;
  /** Records dropped since the last line that dropping is over. */
  #droppedCount = 0;

  constructor(queue: RecordQueue, log: TelemetryLog) {
    this.#queue = queue;
    this.#log = log;
  }

  /** Records were dropped. */
  dropped(count: number): void {
    if (count === 0) return;
    if (this.#droppedCount === 0)
      this.#log.warn({ queued: this.#queue.size, bytes: this.#queue.bytes }, 'queue full: dropping records');
    this.#droppedCount += count;
  }

  /** Records have left the queue. Dropping is over when it is half empty: a full queue has single gaps all the time. */
  removed(): void {
    if (this.#queue.fill <= 0.5) this.end();
  }

  /** No more records will come. */
  end(): void {
    if (this.#droppedCount === 0) return;
    this.#log.warn({ dropped: this.#droppedCount }, 'dropping records is over');
    this.#droppedCount = 0;
  }
}
