import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createClientUsage } from '#admin';
import { type PresentFact, RecordedHistory } from '#history';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { makeRecord, START_MS } from './made-batches.ts';

const SETTINGS = { maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: 35 * 86_400_000 };

let folder: string;
let nowMs: number;
let present: readonly PresentFact[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'off-'));
  nowMs = START_MS;
  present = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function createHistory(): RecordedHistory {
  return new RecordedHistory({
    path: join(folder, 'history.db'),
    version: '1.0.0',
    instanceId: 'id',
    nowMs: () => nowMs,
    present: () => present,
    log: { warn: () => expect.unreachable() },
  });
}

/** A record ends now. */
function end(history: RecordedHistory): void {
  const record = makeRecord({ ts: new Date(nowMs).toISOString() });
  history.record({ record, encodedSpan: encodeRecord(record) });
}

async function usageOf(history: RecordedHistory) {
  const span = { fromMs: START_MS - 60_000, untilMs: START_MS + 3_600_000 };
  const { total, gaps } = await history.ask({
    kind: 'usage',
    ...span,
    by: [],
    filters: {},
    step: null,
    limit: 10,
  });
  return { requests: total.sums.requests, gaps };
}

async function bandsOf(history: RecordedHistory) {
  const { events } = await history.ask({
    kind: 'timeline',
    fromMs: 0,
    untilMs: START_MS + 3_600_000,
    before: null,
    limit: 100,
  });
  return events
    .filter(({ kind }) => kind === 'drain' || kind === 'condition')
    .map(({ subject, fromMs, untilMs }) => [
      subject,
      fromMs - START_MS,
      untilMs === null ? null : untilMs - START_MS,
    ]);
}

const drain = (replica: string, action: 'drain' | 'undrain' = 'drain') =>
  ({
    action,
    replica,
    wasDrained: action === 'undrain',
    inflight: 0,
    reason: null,
    tokenName: 'admin',
    startEpochMs: nowMs,
  }) as const;

it('sums what ended while it was on, and counts what ended while it was off, over reloads in a row', async () => {
  const history = createHistory();
  for (let round = 0; round < 3; round++) {
    await history.configure(SETTINGS);
    end(history);
    end(history);
    nowMs += 100_000;
    await history.configure(null);
    end(history);
    nowMs += 100_000;
  }
  await history.configure(SETTINGS);
  expect(await usageOf(history)).toEqual({
    requests: 6,
    gaps: [500_000, 300_000, 100_000].map((ms) => ({
      fromMs: START_MS + ms,
      toMs: START_MS + ms + 100_000,
      records: 1,
      reason: 'off',
    })),
  });
  await history.stop();
});

it('tells a client when something is missing, and not how much of all tenants', async () => {
  const history = createHistory();
  await history.configure(SETTINGS);
  await history.configure(null);
  end(history);
  nowMs += 1_000;
  await history.configure(SETTINGS);
  const span = 'since=2026-11-21T00:00:00Z&until=2026-11-22T00:00:00Z';
  const { body } = await createClientUsage(history)({ name: 'acme', tenant: 'acme' }, span);
  const [from, until] = [START_MS, nowMs].map((ms) => new Date(ms).toISOString());
  expect(JSON.parse(body).gaps).toEqual([{ from, until, reason: 'off' }]);
  await history.stop();
});

it('says nothing of a time in which it was off and nothing ended', async () => {
  for (const settings of [SETTINGS, null, SETTINGS]) {
    const history = createHistory();
    await history.configure(settings);
    await history.configure(null);
    await history.configure(settings);
    if (settings !== null) expect((await usageOf(history)).gaps).toEqual([]);
    await history.stop();
  }
});

it.each(['a reload', 'the start'])('says over a restart that it was off since %s', async (since) => {
  const before = createHistory();
  await before.configure(SETTINGS);
  end(before);
  nowMs += 1_000;
  let off = before;
  if (since === 'the start') {
    await before.stop();
    off = createHistory();
  }
  await off.configure(null);
  end(off);
  await off.stop();
  nowMs += 1_000;
  const stillOff = createHistory();
  await stillOff.configure(null);
  await stillOff.stop();
  nowMs += 1_000;
  const after = createHistory();
  await after.configure(SETTINGS);
  const gap = { fromMs: START_MS + 1_000, toMs: START_MS + 3_000, records: null, reason: 'off' };
  expect(await usageOf(after)).toEqual({ requests: 1, gaps: [gap] });
  await after.stop();
});

it('has at last the bands that are so, though some began and ended while it was off', async () => {
  const history = createHistory();
  await history.configure(SETTINGS);
  for (const replica of ['undrained', 'stays', 'again', 'forgotten']) history.action(drain(replica));
  const condition = { id: 'x', severity: 'warning', subject: '', sentence: '.', sinceMs: nowMs };
  const begins = { ...condition, action: 'condition_begins', tokenName: null, startEpochMs: nowMs } as const;
  history.action(begins);
  history.action({ ...begins, subject: 'over' });
  nowMs += 1_000;
  await history.configure(null);
  nowMs += 3_000;
  const at = (replica: string, ms: number, isDrained = true) =>
    ({ replica, isDrained, reason: null, sinceMs: START_MS + ms }) as const;
  present = [
    ...[condition, { ...condition, subject: 'new', sinceMs: START_MS + 2_000 }],
    ...[at('undrained', 2_500, false), at('stays', 0), at('again', 2_000), at('new', 3_000)],
  ];
  await history.configure(SETTINGS);
  nowMs += 1_000;
  history.action(drain('stays', 'undrain'));
  expect((await bandsOf(history)).toSorted()).toEqual([
    ['again', 0, 1_000],
    ['again', 2_000, null],
    ['forgotten', 0, 1_000],
    ['new', 3_000, null],
    ['stays', 0, 5_000],
    ['undrained', 0, 2_500],
    ['x ', 0, null],
    ['x new', 2_000, null],
    ['x over', 0, 1_000],
  ]);
  await history.stop();
});

it('goes on with the bands in a new file, if its own was deleted', async () => {
  const history = createHistory();
  present = [{ replica: 'before', isDrained: true, reason: null, sinceMs: START_MS - 1_000 }];
  await history.configure(SETTINGS);
  history.action(drain('on'));
  history.action(drain('off'));
  history.action(drain('off', 'undrain'));
  await history.ask({ kind: 'find', id: 'any', limit: 1 });
  rmSync(history.path);
  nowMs += 1_000;
  history.action(drain('later'));
  expect((await bandsOf(history)).toSorted()).toEqual([
    ['before', -1_000, null],
    ['later', 1_000, null],
    ['on', 0, null],
  ]);
  await history.stop();
});
