import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { runs } from '#testkit/runs.ts';
import { runQuery } from '../../../src/history/queries/run-query.ts';
import type { Query, RecordsAnswer, TimelineAnswer, UsageAnswer } from '../../../src/history/query.ts';
import type { HistoryStore } from '../../../src/history/store/history-store.ts';
import { MAX_USAGE_KEYS } from '../../../src/history/store/usage-store.ts';
import { makeRecord, openStore, START_MS, toBatch } from '../made-batches.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALL = { fromMs: START_MS - HOUR_MS, untilMs: START_MS + 400 * DAY_MS };

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'history-'));
  path = join(folder, 'history.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function ask<A>(store: HistoryStore, query: Query): Promise<A> {
  return (await runQuery(store, query)) as A;
}

async function usageOf(store: HistoryStore, query: Partial<Extract<Query, { kind: 'usage' }>> = {}) {
  const all = { kind: 'usage', by: [], filters: {}, step: null, limit: 1_000, ...ALL } as const;
  return await ask<UsageAnswer>(store, { ...all, ...query });
}

async function recordsOf(store: HistoryStore, query: Partial<Extract<Query, { kind: 'records' }>> = {}) {
  const all = { kind: 'records', filters: {}, before: null, limit: 10_000, ...ALL } as const;
  return await ask<RecordsAnswer>(store, { ...all, ...query });
}

const name = fc.constantFrom('', 'acme', '__proto__', 'constructor', 'ünï', 'a\u0000b', 'x'.repeat(300));

const anyRecord: fc.Arbitrary<Partial<RequestRecord>> = fc.record(
  {
    tenant: name,
    client: name,
    model: name,
    replica: name,
    ts: fc.integer({ min: 0, max: 5 * DAY_MS }).map((ms) => new Date(START_MS + ms).toISOString()),
    status: fc.constantFrom(200, 200, 404, 429, 499, 502),
    error_type: fc.constantFrom('upstream_failed', 'client_closed', '__proto__'),
    attempts: fc.integer({ min: 1, max: 3 }),
    prompt_tokens: fc.integer({ min: 0, max: 1e6 }),
    completion_tokens: fc.integer({ min: 0, max: 1e6 }),
    cached_tokens: fc.integer({ min: 0, max: 1e6 }),
    reasoning_tokens: fc.integer({ min: 0, max: 1e6 }),
    gpu_seconds: fc.double({ min: 0, max: 100, noNaN: true }),
    cost: fc.double({ min: 0, max: 10, noNaN: true }),
    currency: fc.constantFrom('EUR', 'USD'),
    e2e_ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
    ttft_ms: fc.double({ min: 0, max: 1e5, noNaN: true }),
  },
  { requiredKeys: ['ts', 'status', 'e2e_ms'] },
);

it('sums what its records sum to, however they came, over a crash between any two batches', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(anyRecord, { maxLength: 20 }), { maxLength: 6 }), async (batches) => {
      const own = join(mkdtempSync(join(folder, 'run-')), 'history.db');
      const written: RequestRecord[] = [];
      for (const batch of batches) {
        const records = batch.map((fields) => makeRecord(fields));
        const { store } = openStore(own);
        store.write(toBatch(records), START_MS);
        written.push(...records);
        store.db.close(); // as a kill leaves it: nobody has said that this was the end
      }
      const { store } = openStore(own);
      const { records } = await recordsOf(store);
      expect(records.map(({ record }) => record.request_id)).toEqual(
        written.map(({ request_id }) => request_id).toReversed(),
      );
      const { total, rows } = await usageOf(store, { by: ['tenant', 'model'] });
      for (const field of [
        'prompt_tokens',
        'completion_tokens',
        'cached_tokens',
        'reasoning_tokens',
      ] as const) {
        expect(total.sums[field]).toBe(written.reduce((sum, record) => sum + (record[field] ?? 0), 0));
      }
      for (const field of ['gpu_seconds', 'e2e_ms'] as const) {
        const sum = written.reduce((all, record) => all + (record[field] ?? 0), 0);
        expect(total.sums[field]).toBeCloseTo(sum, 5);
      }
      for (const currency of ['EUR', 'USD']) {
        const costing = written.filter((record) => record.currency === currency);
        const cost = costing.reduce((all, record) => all + (record.cost ?? 0), 0);
        expect(total.costs[currency] ?? 0).toBeCloseTo(cost, 8);
      }
      expect(total.sums.requests).toBe(written.length);
      for (const { group, sums } of rows) {
        const own = written.filter(
          ({ tenant, model }) => (tenant || null) === group[0] && (model || null) === group[1],
        );
        expect(sums.requests).toBe(own.length);
      }
      store.close();
    }),
    { numRuns: runs(25) },
  );
});

it('has quantiles of the requests that succeeded: who is refused many times gets no faster answers', async () => {
  const { store } = openStore(path);
  const refused = { status: 429, error_type: 'rate_limit_exceeded', e2e_ms: 1 };
  store.write(toBatch([makeRecord({ e2e_ms: 4_000 }), ...Array(9).fill(makeRecord(refused))]), START_MS);
  const { total } = await usageOf(store);
  expect(total.duration.p50).toBeGreaterThan(3_800);
  expect(total.sums).toMatchObject({ requests: 10, client_errors: 9, e2e_ms: 4_009 });
  store.close();
});

it('says after a kill that the last second may be missing, and not after a shutdown', async () => {
  const first = openStore(path);
  first.store.close();
  const second = openStore(path);
  expect((await usageOf(second.store)).gaps).toEqual([]);
  second.store.db.close();
  const third = openStore(path);
  expect((await usageOf(third.store)).gaps).toMatchObject([{ reason: 'killed', records: null }]);
  third.store.close();
});

it('says after a kill before the first batch that nothing is missing of an earlier run that was shut down', async () => {
  openStore(path).store.close();
  const [secondMs, thirdMs] = [START_MS + HOUR_MS, START_MS + 2 * HOUR_MS];
  openStore(path, { startedMs: secondMs }).store.db.close();
  const { store } = openStore(path, { startedMs: thirdMs });
  const { gaps } = await usageOf(store, { untilMs: thirdMs });
  expect(gaps).toMatchObject([{ reason: 'killed', fromMs: secondMs - 1_000, toMs: thirdMs }]);
  store.close();
});

it('says so of an earlier span, too, in which requests may have arrived that ended in the last second', async () => {
  const first = openStore(path);
  first.store.write(toBatch([makeRecord()], START_MS + HOUR_MS / 2), START_MS + HOUR_MS / 2);
  first.store.db.close();
  const { store } = openStore(path, { startedMs: START_MS + HOUR_MS });
  const gapsUntil = async (untilMs: number) => (await usageOf(store, { untilMs })).gaps;
  expect(await gapsUntil(START_MS)).toMatchObject([{ reason: 'killed', toMs: START_MS + HOUR_MS }]);
  expect(await gapsUntil(START_MS - HOUR_MS)).toEqual([]);
  store.close();
});

it('sums in one row what is beyond the most names of a minute', async () => {
  let { store } = openStore(path);
  const records = Array.from({ length: 2 * MAX_USAGE_KEYS + 10 }, (_, index) =>
    makeRecord({ tenant: `t${index}` }),
  );
  // Again some of those with a row of their own and all without, by a store that has to look up which names there are.
  const again = [...records.slice(0, 100), ...records.slice(-200)];
  for (const part of [records, again]) {
    store.write(toBatch(part), START_MS);
    store.close();
    store = openStore(path).store;
  }
  const { rows, total } = await usageOf(store, { by: ['tenant'], limit: 10_000 });
  expect(rows).toHaveLength(2 * MAX_USAGE_KEYS + 1);
  expect(rows.find(({ isOther }) => isOther)?.sums.requests).toBe(20);
  expect(total.sums.requests).toBe(records.length + again.length);
  store.close();
});

it('sums tenants, clients and models apart, too, where many replicas make too many combinations', async () => {
  const { store } = openStore(path);
  const REPLICAS = MAX_USAGE_KEYS / 10;
  const records = Array.from({ length: REPLICAS }, (_, replica) =>
    Array.from({ length: 20 }, (__, tenant) =>
      makeRecord({ tenant: `t${tenant}`, replica: `r${replica}`, prompt_tokens: tenant }),
    ),
  );
  store.write(toBatch(records.flat()), START_MS);
  const { rows, unnamed } = await usageOf(store, { by: ['tenant', 'model'] });
  expect(rows.map(({ isOther, sums }) => [isOther, sums.requests])).toEqual(
    Array.from({ length: 20 }, () => [false, REPLICAS]),
  );
  expect(unnamed).toBe(0);
  const acme = await usageOf(store, { filters: { tenant: 't7' } });
  expect([acme.total.sums.prompt_tokens, acme.unnamed]).toEqual([7 * REPLICAS, 0]);
  const byReplica = await usageOf(store, { by: ['tenant', 'replica'], limit: 10_000 });
  expect(byReplica.rows.find(({ isOther }) => isOther)?.sums.requests).toBe(10 * REPLICAS);
  expect(byReplica.total.sums.requests).toBe(20 * REPLICAS);
  const [first, last] = await Promise.all(
    ['r0', `r${REPLICAS - 1}`].map((replica) => usageOf(store, { filters: { tenant: 't7', replica } })),
  );
  expect([first?.total.sums.requests, first?.unnamed]).toEqual([1, REPLICAS / 2]);
  expect([last?.total.sums.requests, last?.unnamed, last?.unknown]).toEqual([0, REPLICAS / 2, []]);
  store.close();
});

it('keeps what is to be summed until a minute is over, somebody asks, or the end', async () => {
  let { store } = openStore(path);
  const waiting = () => Number(store.db.prepare('SELECT count(*) AS n FROM usage_waiting').get()?.n);
  const write = (atMs: number) => store.write(toBatch([makeRecord({ tenant: 'acme' })]), atMs);
  const asked = async () => (await usageOf(store, { filters: { tenant: 'acme' } })).total.sums.requests;
  write(START_MS);
  for (let second = 1; second <= 3; second++) write(START_MS + second * 1_000);
  expect(waiting()).toBe(3);
  write(START_MS + 60_000);
  expect(waiting()).toBe(0);
  write(START_MS + 61_000);
  expect([await asked(), waiting()]).toEqual([6, 0]);
  write(START_MS + 62_000);
  store.db.close(); // a kill
  store = openStore(path).store;
  expect([waiting(), await asked()]).toEqual([1, 7]);
  write(START_MS + 120_000);
  write(START_MS + 121_000);
  store.close();
  store = openStore(path).store;
  expect([waiting(), await asked()]).toEqual([0, 9]);
  store.close();
});

it('says what its sums lack while a full disk has no room for them, or because it is damaged', async () => {
  const { store } = openStore(path);
  const write = (fields: Partial<RequestRecord> = {}) => store.write(toBatch([makeRecord(fields)]), START_MS);
  write();
  write({ ts: new Date(START_MS + 60_000).toISOString() });
  store.db.exec(
    `CREATE TEMP TRIGGER full BEFORE INSERT ON usage_hours BEGIN SELECT RAISE(FAIL, 'full'); END`,
  );
  const [fromMs, toMs] = [START_MS + 60_000, START_MS + 119_999];
  expect(await usageOf(store)).toMatchObject({
    total: { sums: { requests: 1 } },
    gaps: [{ fromMs, toMs, records: 1, reason: 'waiting' }],
  });
  expect((await usageOf(store, { untilMs: fromMs })).gaps).toEqual([]);
  store.db.exec('DROP TRIGGER full');
  expect(await usageOf(store)).toMatchObject({ total: { sums: { requests: 2 } }, gaps: [] });

  write();
  store.db.exec('UPDATE usage_waiting SET deltas = zeroblob(length(deltas))');
  expect(await usageOf(store)).toMatchObject({
    total: { sums: { requests: 2 } },
    gaps: [{ fromMs: START_MS, toMs: START_MS + 59_999, records: null, reason: 'damaged' }],
  });
  store.close();
});

it('divides a span at the times that are given, as of days', async () => {
  const { store } = openStore(path);
  const at = (hours: number) => makeRecord({ ts: new Date(START_MS + hours * HOUR_MS).toISOString() });
  store.write(toBatch([-1, 0, 22.9, 23, 46, 48].map(at)), START_MS + 3 * DAY_MS);
  const [first, second] = [START_MS, START_MS + 23 * HOUR_MS];
  const span = { fromMs: START_MS - 0.5 * HOUR_MS, untilMs: START_MS + 47 * HOUR_MS };
  const { rows } = await usageOf(store, { ...span, step: { starts: [first - DAY_MS, first, second] } });
  expect(rows.map(({ startMs, sums }) => [startMs, sums.requests])).toEqual([
    [first, 2],
    [second, 2],
  ]);
  store.close();
});

it('says how many requests may be of a name and were summed without names, and that it is not unknown', async () => {
  const { store } = openStore(path);
  const unnamed = 100;
  const count = 2 * MAX_USAGE_KEYS + unnamed;
  const records = Array.from({ length: count }, (_, index) => makeRecord({ tenant: `t${index}` }));
  store.write(toBatch(records), START_MS);
  const [first, last] = await Promise.all(
    ['t0', `t${count - 1}`].map((tenant) => usageOf(store, { filters: { tenant } })),
  );
  expect([first?.total.sums.requests, first?.unnamed]).toEqual([1, unnamed]);
  expect([last?.total.sums.requests, last?.unnamed, last?.unknown]).toEqual([0, unnamed, []]);
  const all = await usageOf(store);
  expect([all.total.sums.requests, all.unnamed]).toEqual([count, 0]);
  store.close();
});

it('rounds the end of a span up to an hour, as its beginning down, where minutes are gone', async () => {
  const { store } = openStore(path);
  const HALF_MS = HOUR_MS / 2;
  const at = (ms: number) => makeRecord({ ts: new Date(START_MS + ms).toISOString() });
  store.write(toBatch([at(0), at(HALF_MS), at(HOUR_MS), at(HOUR_MS + HALF_MS)]), START_MS + 2 * HOUR_MS);
  const span = { fromMs: START_MS + HALF_MS, untilMs: START_MS + HOUR_MS + HALF_MS };
  expect(await usageOf(store, span)).toMatchObject({ ...span, total: { sums: { requests: 2 } } });
  for (const minute of [0, 1]) store.write(toBatch([]), START_MS + 8 * DAY_MS + minute * 60_000);
  expect(await usageOf(store, span)).toMatchObject({
    fromMs: START_MS,
    untilMs: START_MS + 2 * HOUR_MS,
    resolution: 'hour',
    total: { sums: { requests: 4 } },
  });
  store.close();
});

it('names in one gap what is left out for long', async () => {
  const { store } = openStore(path);
  for (let second = 0; second < 300; second++) {
    const nowMs = START_MS + second * 1_000;
    const gap = { fromMs: nowMs, toMs: nowMs + 999, records: 2 };
    store.write({ ...toBatch([], nowMs), gaps: [{ ...gap, reason: 'behind' }] }, nowMs);
  }
  const nowMs = START_MS + HOUR_MS;
  const later = { fromMs: nowMs, toMs: nowMs, records: 1, reason: 'behind' } as const;
  store.write({ ...toBatch([], nowMs), gaps: [later] }, nowMs);
  expect((await usageOf(store)).gaps).toEqual([
    later,
    { fromMs: START_MS, toMs: START_MS + 299_999, records: 600, reason: 'behind' },
  ]);
  store.close();
});

it('tells gaps beyond a hundred as one for each reason, and leaves out none', async () => {
  const { store } = openStore(path);
  const gaps = Array.from({ length: 150 }, (_, index) => {
    const atMs = START_MS + index * 10 * 60_000;
    const reason = index % 3 === 0 ? 'off' : 'behind';
    return { fromMs: atMs, toMs: atMs + 1_000, records: index === 9 ? null : 2, reason } as const;
  });
  for (const gap of gaps) store.write({ ...toBatch([], gap.toMs), gaps: [gap] }, gap.toMs);
  const told = (await usageOf(store, { untilMs: START_MS + 2 * DAY_MS })).gaps;
  expect(told.slice(0, 100)).toEqual(gaps.slice(50).toReversed());
  expect(told.slice(100)).toEqual([
    { fromMs: gaps[1]?.fromMs, toMs: gaps[49]?.toMs, records: 33 * 2, reason: 'behind' },
    { fromMs: gaps[0]?.fromMs, toMs: gaps[48]?.toMs, records: null, reason: 'off' },
  ]);
  store.close();
});

it('a file stays below its limit, and the oldest records go first', async () => {
  const maxSizeBytes = 16 * 1024 ** 2;
  const { store } = openStore(path, { maxSizeBytes });
  const noise = () => Array.from({ length: 512 }, () => Math.random().toString(16).slice(2, 18));
  const make = () => toBatch(Array.from({ length: 64 }, () => makeRecord({ prefix_hashes: noise() })));
  for (let round = 0; round < 27; round++) store.write(make(), START_MS + round * 60_000);
  for (let round = 0; round < 3; round++) store.write(make(), START_MS + 26 * 60_000 + round * 1_000);
  // Sums are not hurried by that: there are records to remove.
  expect(store.db.prepare('SELECT count(*) AS n FROM usage_waiting').get()?.n).toBe(3);
  const { records, kept } = await recordsOf(store);
  expect(statSync(path).size + statSync(`${path}-wal`).size).toBeLessThanOrEqual(maxSizeBytes);
  expect(records.length).toBeLessThan(30 * 64);
  expect(records.length).toBeGreaterThan(64);
  expect(kept.recordsMs).toBeGreaterThanOrEqual(START_MS);
  expect((await usageOf(store)).total.sums.requests).toBe(30 * 64);
  store.close();
});

it('writes what a full disk has room for, though it has none for removing what is too old', async () => {
  const { store } = openStore(path, { maxAgeMs: DAY_MS });
  store.write(toBatch([makeRecord()]), START_MS);
  store.db.exec(`CREATE TEMP TRIGGER full BEFORE DELETE ON blocks BEGIN SELECT RAISE(FAIL, 'full'); END`);
  const nowMs = START_MS + DAY_MS + 120_000;
  const batch = toBatch([makeRecord({ ts: new Date(nowMs).toISOString() })]);
  expect(() => store.write(batch, nowMs)).toThrow('full');
  store.write(batch, nowMs + 1_000);
  const { records, kept } = await recordsOf(store);
  expect([records.length, kept.recordsMs, (await usageOf(store)).total.sums.requests]).toEqual([
    2,
    START_MS,
    2,
  ]);
  store.db.exec('DROP TRIGGER full');
  store.write(toBatch([]), nowMs + 60_000);
  expect((await recordsOf(store)).records).toHaveLength(1);
  expect(store.kept().recordsMs).toBe(START_MS + 1);
  store.close();
});

it('removes records, minutes and hours when they are as old as they may be', async () => {
  const { store } = openStore(path, { maxAgeMs: DAY_MS });
  store.write(toBatch([makeRecord()]), START_MS);
  store.write(toBatch([]), START_MS + DAY_MS + 120_000);
  expect((await recordsOf(store)).records).toEqual([]);
  expect((await usageOf(store, { untilMs: START_MS + HOUR_MS / 2 })).total.sums.requests).toBe(1);
  store.write(toBatch([]), START_MS + 8 * DAY_MS);
  expect(await usageOf(store)).toMatchObject({ total: { sums: { requests: 1 } }, resolution: 'hour' });
  store.write(toBatch([]), START_MS + 401 * DAY_MS);
  expect((await usageOf(store)).total.sums.requests).toBe(0);
  store.close();
});

it('removes what a reload says is too old', async () => {
  const { store } = openStore(path, { maxAgeMs: 7 * DAY_MS });
  store.write(toBatch([makeRecord()]), START_MS);
  store.write(toBatch([], START_MS + DAY_MS), START_MS + DAY_MS);
  expect((await recordsOf(store)).records).toHaveLength(1);
  store.configure({ maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: HOUR_MS });
  store.write(toBatch([], START_MS + DAY_MS), START_MS + DAY_MS);
  expect((await recordsOf(store)).records).toEqual([]);
  store.close();
});

it('says of an answer what is kept when it ends, also if a reload has removed more meanwhile', async () => {
  const { store } = openStore(path);
  store.write(toBatch([makeRecord()]), START_MS);
  const asked = recordsOf(store);
  store.configure({ maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: HOUR_MS });
  store.write(toBatch([], START_MS + DAY_MS), START_MS + DAY_MS);
  expect((await asked).kept.recordsMs).toBe(START_MS + 1);
  store.close();
});

it('takes over a lower limit later if nothing can be removed at the time', () => {
  const maxSizeBytes = 64 * 1024 ** 2;
  const { store } = openStore(path, { maxSizeBytes });
  const pages = () => Number(store.db.prepare('PRAGMA max_page_count').get()?.max_page_count);
  const before = pages();
  const noise = () => Array.from({ length: 64 }, () => Math.random().toString(16).slice(2, 18));
  const texts = Array.from({ length: 400 }, () => makeRecord({ prefix_hashes: noise() }));
  for (let round = 0; store.usedBytes < 1.5 * 1024 ** 2; round++) {
    store.write(toBatch(texts), START_MS + round);
    store.settle();
  }
  store.db.exec(`CREATE TEMP TRIGGER full BEFORE DELETE ON blocks BEGIN SELECT RAISE(FAIL, 'full'); END`);

  // The log of writes takes 8 MiB of it.
  const lower = { maxSizeBytes: 9 * 1024 ** 2, maxAgeMs: 400 * DAY_MS };
  expect(() => store.configure(lower)).toThrow('full');
  expect(() => store.write(toBatch([]), START_MS)).toThrow('full');
  expect(pages()).toBe(before);

  store.db.exec('DROP TRIGGER full');
  store.write(toBatch([makeRecord()]), START_MS);
  expect(pages()).toBeLessThan(before);
  expect(store.usedBytes).toBeLessThan(1024 ** 2);
  store.close();
});

it('finds a record by each of its ids, in open chunks and in complete blocks', async () => {
  const { store } = openStore(path);
  const records = Array.from({ length: 600 }, (_, index) =>
    makeRecord({ response_id: `chatcmpl-${index}`, client_request_id: `mine-${index}` }),
  );
  for (let at = 0; at < records.length; at += 7) store.write(toBatch(records.slice(at, at + 7)), START_MS);
  for (const record of [records[0], records[255], records[256], records[599]]) {
    for (const id of [record?.request_id, record?.trace_id, record?.response_id, record?.client_request_id]) {
      const found = await ask<RecordsAnswer>(store, { kind: 'find', id: id ?? '', limit: 10 });
      expect(found.records.map((each) => each.record.request_id)).toEqual([record?.request_id]);
    }
  }
  expect((await ask<RecordsAnswer>(store, { kind: 'find', id: 'nobody', limit: 10 })).records).toEqual([]);
  store.close();
});

it('keeps a frame that has no room for another record as a block, and writes it once', () => {
  const { store } = openStore(path);
  // More than 1.5 KB each: a frame has no room for 256 of them.
  const feature = 'x'.repeat(1_400);
  const { chunks, ...rest } = toBatch(Array.from({ length: 600 }, () => makeRecord({ feature })));
  const whole = chunks.slice(0, 2);
  expect(whole.map(({ count }) => count < 256)).toEqual([true, true]);
  expect(store.write({ ...rest, chunks: whole }, START_MS)).toMatchObject({ blocks: 2 });
});

it('refuses a page of a file that is not there any more, sooner than to leave out records', async () => {
  const { store } = openStore(path);
  store.write(toBatch([makeRecord(), makeRecord()]), START_MS);
  const { next } = await recordsOf(store, { limit: 1 });
  store.close();
  expect(next).toBeGreaterThan(0);
  const { store: again } = openStore(path);
  const timeline = { kind: 'timeline', ...ALL, limit: 1 } as const;
  const { next: nextEvent } = await ask<TimelineAnswer>(again, { ...timeline, before: null });
  expect(nextEvent).toBeGreaterThan(0);
  expect(await ask<TimelineAnswer>(again, { ...timeline, before: nextEvent })).toMatchObject({ next: null });
  again.close();
  const others = await Promise.all(
    ['b.db', 'c.db'].map(async (name) => {
      const { store: other } = openStore(join(folder, name));
      other.write(toBatch([makeRecord(), makeRecord(), makeRecord()]), START_MS);
      const records: unknown = await recordsOf(other, { before: next });
      return [records, await ask(other, { ...timeline, before: nextEvent })];
    }),
  );
  // Each file has its numbers by chance: both of two others hardly ever have the same ones.
  const refused = { kind: 'refused', reason: 'no_such_page' };
  expect(others).toContainEqual([refused, refused]);
});

it('lists pages that together have each record once', async () => {
  const { store } = openStore(path);
  const records = Array.from({ length: 700 }, (_, index) => makeRecord({ tenant: `t${index % 3}` }));
  for (let at = 0; at < records.length; at += 50) store.write(toBatch(records.slice(at, at + 50)), START_MS);
  const seen: string[] = [];
  for (let before: number | null = null; ; ) {
    const page: RecordsAnswer = await recordsOf(store, { filters: { tenant: 't1' }, before, limit: 60 });
    seen.push(...page.records.map(({ record }) => record.request_id));
    if (page.next === null) break;
    before = page.next;
  }
  const expected = records.filter(({ tenant }) => tenant === 't1').map(({ request_id }) => request_id);
  expect(seen).toEqual(expected.toReversed());
  store.close();
});

it('says which names nobody has had', async () => {
  const { store } = openStore(path);
  store.write(toBatch([makeRecord({ tenant: 'acme' })]), START_MS);
  const asked = { filters: { tenant: 'nobody' } };
  expect((await usageOf(store, asked)).unknown).toEqual(['tenant']);
  expect((await recordsOf(store, asked)).unknown).toEqual(['tenant']);
  expect((await usageOf(store, { filters: { tenant: 'acme' }, fromMs: START_MS + DAY_MS })).unknown).toEqual(
    [],
  );
  store.close();
});

it.each([
  ['is no database', (file: string) => writeFileSync(file, 'x'.repeat(10_000)), 'damaged'],
  ['was cut', (file: string) => truncateSync(file, statSync(file).size - 8192), 'damaged'],
])('sets a file aside that %s, and begins anew', async (_, damage, reason) => {
  const before = openStore(path).store;
  for (let round = 0; round < 5; round++) {
    before.write(toBatch(Array.from({ length: 256 }, () => makeRecord())), START_MS);
  }
  before.close();
  damage(path);
  let opened = openStore(path);
  if (opened.setAside === null) {
    // It was closed well, so it was not checked: what its use finds is told, and it is opened again.
    opened.store.db.close();
    opened = openStore(path);
  }
  expect(opened.setAside?.reason).toBe(reason);
  opened.store.write(toBatch([makeRecord()]), START_MS);
  expect((await recordsOf(opened.store)).records).toHaveLength(1);
  expect(readdirSync(folder)).toContain(opened.setAside?.name);
  opened.store.close();
});

it('sets a database of another version aside', () => {
  const { store } = openStore(path);
  store.db.exec('PRAGMA user_version = 99');
  store.close();
  const opened = openStore(path);
  expect(opened.setAside?.reason).toBe('version_99');
  opened.store.close();
});

it('no two gateways open one file', () => {
  const { store } = openStore(path);
  expect(() => openStore(path)).toThrow(expect.objectContaining({ errcode: 5 }));
  store.close();
});
