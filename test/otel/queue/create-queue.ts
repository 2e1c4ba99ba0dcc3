import { allocateSharedQueue, type QueueBounds, SharedQueueState } from '#otel/queue/shared';
import { RecordQueue } from '../../../otel/queue/record-queue.ts';

/** A queue for the records of one thread. */
export function createRecordQueue(bounds: QueueBounds): RecordQueue {
  return new RecordQueue(new SharedQueueState(allocateSharedQueue(0, bounds)));
}
