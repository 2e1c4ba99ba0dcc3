import type { FakeCollector } from '#testkit/fake-collector.ts';

/** The records of a collector compared with the requests that clients saw answered. */
export interface RecordComparison {
  readonly records: number;
  /** Answered requests without a record. */
  readonly missing: number;
  /** Records of requests that no client saw answered. */
  readonly unknown: number;
}

/** Compares by the gateway's request id. A record that was delivered twice counts once. */
export function compareRecords(collector: FakeCollector, requestIds: readonly string[]): RecordComparison {
  const ids = collector.spans.map(({ attributes }) => attributes['gateway.request_id']);
  const recorded = new Set(ids.filter((id) => id !== undefined));
  const answered = new Set<unknown>(requestIds);
  return {
    records: recorded.size,
    missing: answered.difference(recorded).size,
    unknown: recorded.difference(answered).size,
  };
}
