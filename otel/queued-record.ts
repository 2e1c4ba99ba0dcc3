import { BoundedQueue } from './bounded-queue.ts';

/** A record on its way to the collector: its encoded span, and when it came by the loop's clock. */
export interface QueuedRecord {
  readonly line: Uint8Array;
  readonly queuedAtMs: number;
}

/** The records that wait for the collector. */
export type RecordQueue = BoundedQueue<QueuedRecord>;

/** Creates the queue of at most `capacity` records, whose encoded spans together are `capacityBytes` at most. */
export function createRecordQueue(bounds: {
  readonly capacity: number;
  readonly capacityBytes: number;
}): RecordQueue {
  return new BoundedQueue<QueuedRecord>({ ...bounds, sizeOf: ({ line }) => line.length });
}
