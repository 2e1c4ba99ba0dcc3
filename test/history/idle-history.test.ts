import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RecordedHistory } from '#history';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { runQuery } from '../../src/history/queries/run-query.ts';
import { makeRecord, openStore, START_MS } from './made-batches.ts';

const HOUR_MS = 3_600_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'idle-'));
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

it('names no more than the last minute after a kill of a gateway that had nothing to do for hours', async () => {
  const path = join(folder, 'history.db');
  let nowMs = START_MS;
  const history = new RecordedHistory({
    path,
    version: '1.0.0',
    instanceId: 'id',
    nowMs: () => nowMs,
    present: () => [],
    log: { warn: () => expect.unreachable() },
  });
  await history.configure({ maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: 24 * HOUR_MS });
  const record = makeRecord();
  history.record({ record, encodedSpan: encodeRecord(record) });
  const untilWritten = async () => await history.ask({ kind: 'find', id: record.request_id, limit: 1 });
  await untilWritten();
  nowMs += 10 * HOUR_MS;
  vi.advanceTimersByTime(60_000);
  await untilWritten();
  // What a kill would leave.
  const killed = join(folder, 'killed.db');
  for (const suffix of ['', '-wal']) copyFileSync(path + suffix, killed + suffix);
  await history.stop();
  const { store } = openStore(killed, { startedMs: nowMs + 5_000 });
  const query = { kind: 'timeline', fromMs: 0, untilMs: nowMs + HOUR_MS, before: null, limit: 10 } as const;
  const { gaps } = (await runQuery(store, query)) as { gaps: readonly unknown[] };
  expect(gaps).toMatchObject([{ reason: 'killed', fromMs: nowMs - 1_000, toMs: nowMs + 5_000 }]);
  store.close();
});
