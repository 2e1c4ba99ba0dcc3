import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { IS_NIGHT } from '#testkit/runs.ts';
import { runQuery } from '../../../src/history/queries/run-query.ts';
import type { RecordsAnswer, UsageAnswer } from '../../../src/history/query.ts';
import { makeRecord, openStore, START_MS, toBatch } from '../made-batches.ts';

const SPAN = { fromMs: START_MS - 1_000, untilMs: START_MS + 3_600_000 };
const PAGE_BYTES = 8192;
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

const random = toRandom(34);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'history-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The bytes of the database, and of the log of its writes. */
interface Files {
  readonly db: Buffer;
  readonly wal: Buffer;
}

function read(path: string): Files {
  return { db: readFileSync(path), wal: readFileSync(`${path}-wal`) };
}

/** What a kill leaves while the log is written, from its first changed byte on. */
function* duringLog(before: Files, after: Files): Generator<Files> {
  const frame = FRAME_HEADER_BYTES + PAGE_BYTES;
  for (let at = 0; at <= after.wal.length; at += at === 0 ? WAL_HEADER_BYTES : frame) {
    for (const extra of [0, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + 1_000]) {
      const written = after.wal.subarray(0, at + extra);
      yield { db: before.db, wal: Buffer.concat([written, before.wal.subarray(written.length)]) };
    }
  }
}

/** What a kill leaves while pages are copied from the log to the file: in any order. */
function* duringCheckpoint(before: Files, after: Files): Generator<Files> {
  for (let round = 0; round < 8; round++) {
    const db = Buffer.from(after.db);
    for (let at = 0; at < before.db.length; at += PAGE_BYTES) {
      if (random() < 0.5) before.db.copy(db, at, at, at + PAGE_BYTES);
    }
    yield { db, wal: after.wal };
  }
}

/** At night all that kills leave; on each change a quarter, which begins elsewhere for each batch. */
function* choose(kills: Iterable<Files>, round: number): Generator<Files> {
  const step = IS_NIGHT ? 1 : 4;
  let index = round;
  for (const files of kills) {
    if (index % step === 0) yield files;
    index += 1;
  }
}

/** Opens what a kill has left, and compares its sums with its records. Returns how many there are. */
async function examine({ db, wal }: Files): Promise<number> {
  const path = join(folder, 'killed.db');
  writeFileSync(path, db);
  writeFileSync(`${path}-wal`, wal);
  const { store, setAside } = openStore(path);
  expect(setAside).toBeNull();
  // What is summed now need not outlast anything.
  store.db.exec('PRAGMA synchronous = OFF');
  const ask = async <A>(kind: 'usage' | 'records') => {
    const query = { kind: 'usage', by: [], step: null, filters: {}, before: null, limit: 9_999 };
    return (await runQuery(store, { ...query, ...SPAN, kind } as never)) as A;
  };
  const { records } = await ask<RecordsAnswer>('records');
  const { total, gaps } = await ask<UsageAnswer>('usage');
  store.db.close();
  rmSync(`${path}-wal`, { force: true });
  expect(gaps).toMatchObject([{ reason: 'killed' }]);
  expect(new Set(records.map(({ record }) => record.request_id)).size).toBe(records.length);
  expect(total.sums.requests).toBe(records.length);
  const tokens = records.reduce((sum, { record }) => sum + (record.prompt_tokens ?? 0), 0);
  expect(total.sums.prompt_tokens).toBe(tokens);
  return records.length;
}

it('after a kill at any byte that is written, has each batch in whole or not at all, and its sums are right', async () => {
  const path = join(folder, 'history.db');
  const { store } = openStore(path);
  // Often enough that the log begins anew between two batches.
  store.db.exec('PRAGMA wal_autocheckpoint = 24');
  let written = 0;
  let restarts = 0;
  for (let round = 0; round < 12; round++) {
    const count = 1 + Math.floor(random() * 60);
    const before = read(path);
    const tokens = () => Math.floor(random() * 1e6);
    const batch = Array.from({ length: count }, () =>
      makeRecord({ prompt_tokens: tokens(), tenant: `t${round}` }),
    );
    // What waits is summed now and then.
    store.write(toBatch(batch), START_MS + round * 20_000);
    const after = read(path);
    if (!after.wal.subarray(0, WAL_HEADER_BYTES).equals(before.wal.subarray(0, WAL_HEADER_BYTES)))
      restarts += 1;
    for (const files of choose(duringLog(before, after), round)) {
      expect([written, written + count]).toContain(await examine(files));
    }
    for (const files of choose(duringCheckpoint(before, after), round)) {
      expect(await examine(files)).toBe(written + count);
    }
    written += count;
  }
  expect(restarts).toBeGreaterThan(0);
  store.close();
}, 120_000);
