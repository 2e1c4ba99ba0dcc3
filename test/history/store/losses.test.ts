import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RecordLoss } from '#otel/ledger';
import { RecordFeed } from '../../../src/history/feed/record-feed.ts';
import { runQuery } from '../../../src/history/queries/run-query.ts';
import type { Answer, RecordsAnswer } from '../../../src/history/query.ts';
import type { HistoryStore } from '../../../src/history/store/history-store.ts';
import { makeRecord, openStore, START_MS, toBatch } from '../made-batches.ts';

const DAY_MS = 86_400_000;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'losses-'));
  path = join(folder, 'history.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const loss = (first: number, last = first, why: RecordLoss['why'] = 'dropped'): RecordLoss => ({
  instance: 'i',
  first,
  last,
  why,
  isKnown: true,
});

function write(store: HistoryStore, losses: readonly RecordLoss[], atMs = START_MS): void {
  const feed = new RecordFeed();
  for (const each of losses) feed.addLoss(each);
  store.write(feed.take(atMs), atMs);
}

async function statementOf(
  store: HistoryStore,
  query: { before?: number | null; limit?: number; tenant?: string } = {},
) {
  const all = {
    kind: 'statement',
    tenant: 'acme',
    before: null,
    limit: 100,
    fromMs: START_MS,
    untilMs: START_MS + DAY_MS,
  } as const;
  const answer = await runQuery(store, { ...all, ...query });
  return answer as Extract<Answer, { kind: 'statement' }>;
}

it('keeps ranges that follow each other as one, over batches and a restart', async () => {
  const first = openStore(path);
  write(first.store, [loss(1), loss(2), loss(3, 9, 'lost'), loss(5)]);
  write(first.store, [loss(6, 8), loss(10)], START_MS + 1_000);
  first.store.close();
  const { store } = openStore(path);
  write(store, [loss(11)], START_MS + 2_000);
  const { losses } = await statementOf(store);
  expect(losses.map(({ first, last, why }) => [first, last, why])).toEqual([
    [1, 2, 'dropped'],
    [3, 9, 'lost'],
    [5, 8, 'dropped'],
    [10, 11, 'dropped'],
  ]);
  expect(losses[2]).toMatchObject({ fromMs: START_MS, toMs: START_MS + 1_000, isKnown: true });
  store.close();
});

it('forgets the oldest beyond the most that are kept, and says since when all are', async () => {
  const { store } = openStore(path);
  const apart = (count: number, from: number) =>
    Array.from({ length: count }, (_, index) => loss(from + 2 * index));
  write(store, apart(50_000, 1));
  write(store, apart(10, 200_001), START_MS + 60_000);
  write(store, [], START_MS + 120_001);
  expect(store.kept().lossesMs).toBe(START_MS + 1);
  expect((await statementOf(store)).losses).toHaveLength(10);
  store.close();
});

it('lists the records of one tenant in pages, each once, with its digest', async () => {
  const { store } = openStore(path);
  const records = Array.from({ length: 600 }, (_, index) =>
    makeRecord({ tenant: index % 3 === 0 ? 'acme' : 'other' }),
  );
  for (let at = 0; at < 600; at += 50) store.write(toBatch(records.slice(at, at + 50)), START_MS);
  write(store, [loss(1)]);
  const pages = [];
  for (let before: number | null = null; ; ) {
    const page = await statementOf(store, { before, limit: 60 });
    pages.push(page);
    if (page.next === null) break;
    before = page.next;
  }
  const listed = pages.flatMap((page) => page.records);
  expect(listed.map(({ record }) => record.seq)).toEqual(
    records
      .filter(({ tenant }) => tenant === 'acme')
      .map(({ seq }) => seq)
      .toReversed(),
  );
  expect(new Set(listed.map(({ digest }) => digest)).size).toBe(200);
  expect(pages.map(({ losses }) => losses.length)).toEqual([1, 0, 0, 0]);
  expect(await statementOf(store, { tenant: 'nobody' })).toMatchObject({ records: [], unknown: ['tenant'] });
  store.close();
});

it('makes a database of version 1 one of this version, with all that is in it', async () => {
  const before = openStore(path).store;
  const records = Array.from({ length: 300 }, () => makeRecord({ tenant: 'acme' }));
  // A block, and a chunk that waits to be one.
  for (const part of [records.slice(0, 256), records.slice(256)]) before.write(toBatch(part), START_MS);
  before.close();
  const db = new DatabaseSync(path);
  const blocks = db.prepare('SELECT first, names FROM blocks').all();
  const ids = Buffer.concat(
    db
      .prepare('SELECT ids FROM record_ids ORDER BY first')
      .all()
      .map((row) => row.ids as Uint8Array),
  );
  db.exec(
    `DROP TABLE losses; DROP TABLE usage_waiting; ALTER TABLE meta DROP COLUMN losses_ms; ALTER TABLE usage_minutes DROP COLUMN crc;
     ALTER TABLE usage_hours DROP COLUMN crc; ALTER TABLE blocks DROP COLUMN names; DROP TABLE record_ids;
     CREATE TABLE block_keys (first INTEGER PRIMARY KEY, keys BLOB NOT NULL); PRAGMA user_version = 1`,
  );
  const insert = db.prepare('INSERT INTO block_keys VALUES (?, ?)');
  for (const { first, names } of blocks) insert.run(Number(first), Buffer.concat([ids, names as Uint8Array]));
  db.close();
  const { store, setAside } = openStore(path);
  expect(setAside).toBeNull();
  expect(store.kept().lossesMs).toBe(START_MS);
  const later = makeRecord({ tenant: 'acme' });
  store.write(toBatch([later]), START_MS);
  write(store, [loss(1)]);
  expect((await statementOf(store)).losses).toHaveLength(1);
  expect((await statementOf(store, { limit: 1_000 })).records).toHaveLength(301);
  for (const { request_id } of [records[0], records[299], later].filter((each) => each !== undefined)) {
    const query = { kind: 'find', id: request_id, limit: 10 } as const;
    const found = (await runQuery(store, query)) as RecordsAnswer;
    expect(found.records.map(({ record }) => record.request_id)).toEqual([request_id]);
  }
  store.close();
});
