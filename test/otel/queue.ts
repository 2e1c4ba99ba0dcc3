import { allocateLedger, type QueueBounds, RecordLedger } from '#otel/queue/record-ledger.ts';
import { RecordQueue } from '#otel/queue/record-queue.ts';

/** A queue of its own thread alone. */
export function createRecordQueue(bounds: QueueBounds): RecordQueue {
  return new RecordQueue(new RecordLedger(allocateLedger(0, bounds)));
}
