import type { RequestRecord } from '#otel/record/registry';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { RecordFeed } from '../../src/history/feed/record-feed.ts';
import type { Batch } from '../../src/history/messages.ts';
import { HistoryStore } from '../../src/history/store/history-store.ts';

/** When the first record of these tests arrived. */
export const START_MS = Date.parse('2026-11-21T08:00:00.000Z');

let made = 0;

/** A record with ids of its own. */
export function makeRecord(fields: Partial<RequestRecord> = {}): RequestRecord {
  made += 1;
  const id = made.toString(16).padStart(32, '0');
  return {
    ...LEAST_RECORD,
    request_id: `request-${made}`,
    trace_id: id,
    ts: new Date(START_MS).toISOString(),
    instance: 'instance-1',
    seq: made,
    ...fields,
  };
}

/** The batch of records that were fed together. */
export function toBatch(records: readonly RequestRecord[], endMs = START_MS): Batch {
  const feed = new RecordFeed();
  for (const record of records) feed.add({ record, encodedSpan: encodeRecord(record) });
  return feed.take(endMs);
}

/** What a history keeps, unless a test says otherwise. */
export const SETTINGS = { maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: 35 * 86_400_000 };

/** Opens the history in a file. */
export function openStore(
  path: string,
  settings: { maxSizeBytes?: number; maxAgeMs?: number; startedMs?: number } = {},
  abandoned: 'damaged' | null = null,
) {
  return HistoryStore.open({
    path,
    version: '1.0.0',
    instanceId: 'id',
    startedMs: START_MS,
    begun: 'new',
    abandoned,
    present: [],
    ...SETTINGS,
    ...settings,
  });
}
