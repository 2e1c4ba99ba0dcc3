import type { Producer } from '#conditions';
import type { RequestRecord } from '#otel/record/registry';
import { RecentCount } from './recent-count.ts';

/** For so long after the last refused request, the gateway counts as overloaded. */
const LASTS_SECONDS = 10;

const REASONS = {
  buffers: 'the memory for request bodies is used up (`limits.buffered`)',
  queue: 'no replica has room (`max_inflight`, `limits.queue`)',
} as const;

/** What looks at records: a function that is called with each of them, and the producer that tells what they show. */
interface RecordProducer {
  readonly note: (record: Readonly<RequestRecord>) => void;
  readonly produce: Producer;
}

/** Requests that the gateway has refused for want of room. `nowMs`: monotonic milliseconds. */
export function createOverloadProducer(nowMs: () => number): RecordProducer {
  const refusals = new RecentCount(nowMs);
  let reason: string = REASONS.queue;
  return {
    note({ error_type: type, model }) {
      if (type !== 'overloaded') return;
      refusals.add();
      // Without room for its body, the model of a request was not read.
      reason = model === undefined ? REASONS.buffers : REASONS.queue;
    },
    *produce() {
      if (refusals.inLast(LASTS_SECONDS) === 0) return;
      yield { id: 'overloaded', subject: '', figures: { refused: refusals.inLast(60), reason } };
    },
  };
}
