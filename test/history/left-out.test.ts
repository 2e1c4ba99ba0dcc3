import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordedHistory } from '#history';
import { makeRecord, START_MS } from './made-batches.ts';

const MIB = 1024 ** 2;
/** So many bytes of records may wait. */
const MAX_WAITING = 32;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'left-out-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('names each record once that does not fit while nothing can be written, also if it was not exported', async () => {
  const path = join(folder, 'history.db');
  mkdirSync(path); // no database can be opened there
  const log = { warn: () => expect.unreachable() };
  const history = new RecordedHistory({
    path,
    version: '1.0.0',
    instanceId: 'id',
    nowMs: () => START_MS + 1_000,
    present: () => [],
    log,
  });
  await history.configure({ maxSizeBytes: 256 * MIB, maxAgeMs: 400 * 86_400_000 });
  const leftOut = 5;
  for (let index = 0; index < MAX_WAITING + leftOut; index++) {
    const record = makeRecord();
    history.record({ record, encodedSpan: new Uint8Array(MIB) });
    const { instance = '', seq = 0 } = record;
    if (index < MAX_WAITING) continue;
    history.loss({ instance, first: seq, last: seq, why: 'dropped', isKnown: true });
  }
  expect(history.state?.leftOut).toBe(leftOut);
  await expect.poll(() => history.state?.problem?.reason).toBe('cannot_open');
  rmdirSync(path);
  await expect.poll(() => history.state).toMatchObject({ problem: null, waitingBytes: 0 });
  const answer = await history.ask({
    kind: 'usage',
    fromMs: START_MS,
    untilMs: START_MS + 60_000,
    by: [],
    filters: {},
    step: null,
    limit: 10,
  });
  expect(answer).toMatchObject({
    total: { sums: { requests: MAX_WAITING } },
    gaps: [{ fromMs: START_MS, toMs: START_MS + 1_000, records: leftOut, reason: 'behind' }],
  });
  await history.stop();
});
