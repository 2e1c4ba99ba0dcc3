import type { TelemetryLog } from '../telemetry-log.ts';
import type { RecordQueue } from './record-queue.ts';

/** Says when records begin to be dropped and when that is over, with their number: one line each. */
export class DropLog {
  readonly #queue: RecordQueue;
  readonly #log: TelemetryLog;
  /** Records dropped since it was last said that none are. */
  #droppedInARow = 0;

  constructor(queue: RecordQueue, log: TelemetryLog) {
    this.#queue = queue;
    this.#log = log;
  }

  /** So many records were dropped. */
  dropped(count: number): void {
    if (count === 0) return;
    if (this.#droppedInARow === 0)
      this.#log.warn({ queued: this.#queue.size, bytes: this.#queue.bytes }, 'queue full: dropping records');
    this.#droppedInARow += count;
  }

  /** Records have left the queue. Half empty is over, not one place free: a queue at its brim has that all the time. */
  left(): void {
    if (this.#droppedInARow > 0 && this.#queue.fill <= 0.5) this.end();
  }

  /** No record comes any more. */
  end(): void {
    if (this.#droppedInARow === 0) return;
    this.#log.warn({ dropped: this.#droppedInARow }, 'dropping records is over');
    this.#droppedInARow = 0;
  }
}
