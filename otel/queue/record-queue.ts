import type { SharedQueueState } from '#otel/queue/shared';
import { EncodedSpanStore } from './encoded-span-store.ts';

/** A record that waits for the collector: its encoded span, and when it was queued, by the export loop's clock. */
export interface QueuedRecord {
  readonly encodedSpan: Uint8Array;
  readonly queuedAtMs: number;
}

/**
 * The records that wait for the collector, first in, first out. A record that was read keeps its reservation until it is
 * removed, so that records being sent still count. A full queue refuses new records.
 */
export class RecordQueue {
  readonly #state: SharedQueueState;
  /** The tag of each span is the time when it was queued. */
  readonly #spans = new EncodedSpanStore();

  constructor(state: SharedQueueState) {
    this.#state = state;
  }

  /** How many records are in the queue. Records in transit from workers are not. */
  get size(): number {
    return this.#spans.size;
  }

  /** The bytes of all encoded spans together. */
  get bytes(): number {
    return this.#spans.bytes;
  }

  /** How full the queue is, from 0 to 1: by records or by bytes, whichever is more. Records in transit count. */
  get fill(): number {
    return this.#state.fill;
  }

  /** Appends a copy of a record of this thread. False if the queue is full. */
  offer({ encodedSpan, queuedAtMs }: QueuedRecord): boolean {
    if (!this.#state.reserveInQueue(encodedSpan.length)) return false;
    this.#spans.append(encodedSpan, queuedAtMs);
    return true;
  }

  /** Appends a copy of a record that arrived from a worker with a reservation. */
  admit(worker: number, { encodedSpan, queuedAtMs }: QueuedRecord): void {
    this.#state.moveToQueue(worker, encodedSpan.length);
    this.#spans.append(encodedSpan, queuedAtMs);
  }

  /** Inserts records before all others, in their order, as many as there is room for. Returns how many. */
  prepend(records: readonly QueuedRecord[]): number {
    const refused = records.findIndex(({ encodedSpan }) => !this.#state.reserveInQueue(encodedSpan.length));
    const admitted = refused === -1 ? records : records.slice(0, refused);
    this.#spans.prepend(admitted.map(({ encodedSpan, queuedAtMs }) => ({ encodedSpan, tag: queuedAtMs })));
    return admitted.length;
  }

  /**
   * The oldest records, oldest first: at most `count`, and at most `maxBytes` together, but at least one if there is
   * any. They stay in the queue, and their encoded spans are valid until they are removed.
   */
  peek(count: number, maxBytes?: number): QueuedRecord[] {
    return this.#spans
      .peek(count, maxBytes)
      .map(({ encodedSpan, tag }) => ({ encodedSpan, queuedAtMs: tag }));
  }

  /** Removes the oldest records, at most `count`, and releases their reservations. */
  remove(count: number): void {
    const removed = Math.min(count, this.#spans.size);
    for (let index = 0; index < removed; index++) this.#state.release(this.#spans.removeFirst());
  }
}
