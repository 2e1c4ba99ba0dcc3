import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordFeed } from '../../../src/history/feed/record-feed.ts';
import { runQuery } from '../../../src/history/queries/run-query.ts';
import type { Answer, Query } from '../../../src/history/query.ts';
import type { HistoryStore } from '../../../src/history/store/history-store.ts';
import { makeRecord, openStore, SETTINGS, START_MS, toBatch } from '../made-batches.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'clock-'));
  path = join(folder, 'history.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const timeOf = (ms: number) => new Date(ms).toISOString();

async function ask<Kind extends Query['kind'] & Answer['kind']>(
  store: HistoryStore,
  kind: Kind,
  span: { readonly fromMs: number; readonly untilMs: number },
) {
  const query = { kind, by: [], filters: {}, step: null, before: null, limit: 100, tenant: 'acme', ...span };
  const answer = await runQuery(store, query as Query);
  return answer as Extract<Answer, { kind: Kind }>;
}

it('sums what comes after its clock was set back, in a history that began by the wrong clock', async () => {
  const { store } = openStore(path);
  store.write(toBatch([makeRecord()]), START_MS);
  const nowMs = START_MS - 2 * HOUR_MS;
  store.write(toBatch([makeRecord({ ts: timeOf(nowMs) })], nowMs), nowMs);
  const { total, kept } = await ask(store, 'usage', { fromMs: nowMs - HOUR_MS, untilMs: nowMs + 1_000 });
  expect(total.sums.requests).toBe(1);
  expect(Math.max(...Object.values(kept))).toBe(nowMs);
  store.close();
});

it('names what a kill may have taken by the clock before and the one after, when it was set back between', async () => {
  const { store: killed } = openStore(path);
  killed.write(toBatch([makeRecord()], START_MS + HOUR_MS), START_MS + HOUR_MS);
  killed.db.close();
  const { store } = openStore(path);
  // Others may have come after the last that was written.
  for (const atMs of [START_MS, START_MS + HOUR_MS, START_MS + HOUR_MS + MINUTE_MS]) {
    const span = { fromMs: atMs - 500, untilMs: atMs + 500 };
    expect((await ask(store, 'usage', span)).gaps).toMatchObject([{ reason: 'killed' }]);
  }
  const { events } = await ask(store, 'timeline', { fromMs: START_MS, untilMs: START_MS + HOUR_MS });
  expect(events.map(({ kind }) => kind)).toContain('killed');
  store.close();
});

it('names records that came by a later clock than they were left out by', async () => {
  const { store } = openStore(path);
  const feed = new RecordFeed();
  feed.addGap({ fromMs: START_MS + HOUR_MS, toMs: START_MS, records: 1, reason: 'behind' });
  store.write(feed.take(START_MS), START_MS);
  const span = { fromMs: START_MS + HOUR_MS, untilMs: START_MS + 2 * HOUR_MS };
  expect((await ask(store, 'usage', span)).gaps).toMatchObject([{ reason: 'behind', records: 1 }]);
  store.close();
});

it('removes what is too old although its clock was a day ahead once', async () => {
  const { store } = openStore(path, { maxAgeMs: HOUR_MS });
  store.write(toBatch([]), START_MS + 24 * HOUR_MS);
  store.write(toBatch([makeRecord()]), START_MS);
  store.write(toBatch([], START_MS + 2 * HOUR_MS), START_MS + 2 * HOUR_MS);
  const { records } = await ask(store, 'records', { fromMs: START_MS, untilMs: START_MS + HOUR_MS });
  expect(records).toEqual([]);
  store.close();
});

it('loses a few hours, not all, to a clock that is two years ahead for ten minutes', async () => {
  const { store } = openStore(path);
  for (let hour = 0; hour < 48; hour++) {
    const atMs = START_MS + hour * HOUR_MS;
    store.write(toBatch([makeRecord({ ts: timeOf(atMs) })], atMs), atMs);
  }
  const aheadMs = START_MS + 2 * 365 * 24 * HOUR_MS;
  for (let minute = 0; minute < 10; minute++) {
    store.configure(SETTINGS); // as each reload does
    store.write(toBatch([], aheadMs + minute * MINUTE_MS), aheadMs + minute * MINUTE_MS);
  }
  const nowMs = START_MS + 48 * HOUR_MS;
  store.write(toBatch([], nowMs), nowMs);
  const span = { fromMs: START_MS, untilMs: nowMs };
  expect((await ask(store, 'usage', span)).total.sums.requests).toBeGreaterThanOrEqual(38);
  expect((await ask(store, 'records', span)).records.length).toBeGreaterThanOrEqual(38);
  store.close();
});

it('removes what is too old at once when a reload has made max_age shorter', async () => {
  const { store } = openStore(path);
  for (const hour of [0, 10, 20]) {
    const atMs = START_MS + hour * HOUR_MS;
    store.write(toBatch([makeRecord({ ts: timeOf(atMs) })], atMs), atMs);
  }
  store.configure({ ...SETTINGS, maxAgeMs: HOUR_MS });
  const nowMs = START_MS + 20 * HOUR_MS + MINUTE_MS;
  store.write(toBatch([], nowMs), nowMs);
  const { records } = await ask(store, 'records', { fromMs: START_MS, untilMs: nowMs });
  expect(records).toHaveLength(1);
  store.close();
});

it.each([10, -10])(
  'removes what is too old, and no more, although a clock was %i years ahead once',
  async (years) => {
    const { store } = openStore(path, { maxAgeMs: 24 * HOUR_MS });
    const wrongMs = START_MS + years * 365 * 24 * HOUR_MS;
    for (const atMs of [START_MS - HOUR_MS, wrongMs, START_MS]) {
      store.write(toBatch([makeRecord({ ts: timeOf(atMs) })], atMs), atMs);
    }
    const countAt = async (nowMs: number) => {
      store.write(toBatch([], nowMs), nowMs);
      const { records } = await ask(store, 'records', { fromMs: START_MS - 2 * HOUR_MS, untilMs: nowMs });
      return records.length;
    };
    expect(await countAt(START_MS + 24 * HOUR_MS)).toBe(1);
    expect(await countAt(START_MS + 25 * HOUR_MS)).toBe(0);
    store.close();
  },
);

it('shows a drain that ended by an earlier clock than it began', async () => {
  const { store } = openStore(path);
  const drain = { kind: 'drain', subject: 'a', fromMs: START_MS, details: {} } as const;
  for (const [phase, atMs] of [
    ['begin', START_MS],
    ['end', START_MS - HOUR_MS],
  ] as const) {
    const feed = new RecordFeed();
    feed.addEvent({ ...drain, phase, atMs });
    store.write(feed.take(atMs), atMs);
  }
  const { events } = await ask(store, 'timeline', { fromMs: START_MS, untilMs: START_MS + HOUR_MS });
  expect(events).toContainEqual(
    expect.objectContaining({ kind: 'drain', fromMs: START_MS, untilMs: START_MS }),
  );
  store.close();
});
