import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { runs } from '#testkit/runs.ts';
import type { FromHistory, WriterState } from '../../../src/history/messages.ts';
import { runQuery } from '../../../src/history/queries/run-query.ts';
import type { Answer, UsageAnswer, UsageQuery } from '../../../src/history/query.ts';
import { toReason } from '../../../src/history/store/database.ts';
import type { HistoryStore } from '../../../src/history/store/history-store.ts';
import { HistoryWriter } from '../../../src/history/thread/history-writer.ts';
import { DIMENSIONS } from '../../../src/history/usage-sums.ts';
import { makeRecord, openStore, START_MS, toBatch } from '../made-batches.ts';

const MINUTE_MS = 60_000;
/** How often bytes are overwritten. */
const ROUNDS = runs(150);
const USAGE = {
  kind: 'usage',
  by: DIMENSIONS,
  filters: {},
  step: { ms: MINUTE_MS },
  limit: 10_000,
  fromMs: START_MS,
  untilMs: START_MS + 60 * MINUTE_MS,
} as const satisfies UsageQuery;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'damage-'));
  path = join(folder, 'history.db');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** One request of a tenant in a minute, with so many tokens. */
const request = (minute: number, tokens: number, tenant = 'a') =>
  makeRecord({ ts: new Date(START_MS + minute * MINUTE_MS).toISOString(), prompt_tokens: tokens, tenant });

function writeAt(bytes: Uint8Array, position: number, file = path): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, bytes, 0, bytes.length, position);
  closeSync(fd);
}

/** A writer, as the thread has it, and what it has said last. */
function startWriter() {
  const said: {
    state: WriterState | null;
    answers: Map<number, Answer | { kind: 'refused'; reason: string }>;
  } = {
    state: null,
    answers: new Map(),
  };
  const writer = new HistoryWriter(
    {
      path,
      version: '1.0.0',
      instanceId: 'id',
      startedMs: START_MS,
      begun: 'new',
      present: [],
      maxSizeBytes: 64 * 1024 ** 2,
      maxAgeMs: 35 * 86_400_000,
    },
    {
      send(message: FromHistory) {
        if (message.kind === 'state') said.state = message.state;
        if (message.kind === 'answer') said.answers.set(message.id, message.answer);
      },
      nowMs: () => START_MS + 5 * MINUTE_MS,
    },
  );
  let asked = 0;
  const usage = async () => {
    asked += 1;
    await writer.answer(asked, USAGE);
    const answer = said.answers.get(asked);
    if (answer?.kind !== 'usage') throw new Error(`no answer: ${JSON.stringify(answer)}`);
    return answer;
  };
  return { writer, said, usage };
}

it('goes on in a new file when its own was deleted, and tells it', async () => {
  const { writer, said, usage } = startWriter();
  writer.add(toBatch([request(1, 10)]));
  expect((await usage()).total.sums.prompt_tokens).toBe(10);
  rmSync(path);
  writer.add(toBatch([request(6, 7)]));
  const answer = await usage();
  expect(answer.total.sums.prompt_tokens).toBe(7);
  expect(answer.kept.recordsMs).toBeGreaterThan(START_MS);
  expect(said.state).toMatchObject({ problem: null, setAside: { name: null, reason: 'deleted' } });
  writer.close();
  expect(statSync(path).size).toBeGreaterThan(0);
  const { store, setAside } = openStore(path);
  expect(setAside).toBeNull();
  store.close();
});

it('goes on with the history that somebody has put in its place, and tells it', async () => {
  const other = join(folder, 'other.db');
  const { store } = openStore(other);
  store.write(toBatch([request(1, 100)]), START_MS);
  store.close();
  const { writer, said, usage } = startWriter();
  writer.add(toBatch([request(1, 10)]));
  await usage();
  renameSync(other, path);
  writer.add(toBatch([request(2, 7)]));
  expect((await usage()).total.sums.prompt_tokens).toBe(107);
  expect(said.state).toMatchObject({ problem: null, setAside: { name: null, reason: 'replaced' } });
  writer.close();
});

/** Everything is in the file, and nothing in memory: what is read next is read there. */
function flush(store: HistoryStore): void {
  store.db.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA cache_size = 1; PRAGMA shrink_memory');
}

it('is told of a file that was cut while it is open, and begins anew', async () => {
  const { store } = openStore(path);
  for (let minute = 0; minute < 30; minute++) {
    store.write(toBatch(Array.from({ length: 30 }, () => request(minute, 1, `t${minute}`))), START_MS);
  }
  flush(store);
  truncateSync(path, 3 * 8192);
  const read = async () => await runQuery(store, USAGE);
  const reason = await read().then(
    () => 'none',
    (error: unknown) => toReason(error),
  );
  expect(reason).toBe('damaged');
  store.abandon();
  const next = openStore(path, {}, 'damaged');
  expect(next.setAside).toMatchObject({ reason: 'damaged', name: expect.stringContaining('.aside-') });
  next.store.write(toBatch([request(50, 3)]), START_MS);
  const { total } = (await runQuery(next.store, USAGE)) as UsageAnswer;
  expect(total.sums.prompt_tokens).toBe(3);
  next.store.close();
});

it('leaves a sum out that was overwritten, and says so, also when it is written again', async () => {
  const { store } = openStore(path);
  const MARKED = 123_456_789;
  store.write(toBatch([request(1, MARKED), request(2, 5)]), START_MS);
  flush(store);
  const needle = Buffer.alloc(4);
  needle.writeUInt32BE(MARKED);
  const file = readFileSync(path);
  for (let at = file.indexOf(needle); at !== -1; at = file.indexOf(needle, at + 1)) writeAt(Buffer.of(1), at);
  const ask = async () => (await runQuery(store, USAGE)) as UsageAnswer;
  const before = await ask();
  expect(before.total.sums).toMatchObject({ requests: 1, prompt_tokens: 5 });
  expect(before.gaps).toMatchObject([{ fromMs: START_MS + MINUTE_MS, records: null, reason: 'damaged' }]);
  store.write(toBatch([request(1, 2)]), START_MS);
  const after = await ask();
  expect(after.total.sums).toMatchObject({ requests: 2, prompt_tokens: 7 });
  expect(after.gaps).toContainEqual(
    expect.objectContaining({ fromMs: START_MS + MINUTE_MS, reason: 'damaged' }),
  );
  store.db.close();
});

it('never tells a row of sums that was not written, whatever bytes of the open file are overwritten', async () => {
  const random = toRandom(341);
  const outcomes = { whole: 0, less: 0, refused: 0 };
  const pristine = join(folder, 'pristine.db');
  const first = openStore(pristine).store;
  const expected = new Map<string, number>();
  for (let minute = 0; minute < 40; minute++) {
    const tokens = Array.from({ length: 12 }, () => Math.floor(random() * 1e5));
    first.write(toBatch(tokens.map((count, index) => request(minute, count, `t${index % 5}`))), START_MS);
    for (const [index, count] of tokens.entries()) {
      const key = `${START_MS + minute * MINUTE_MS} t${index % 5}`;
      expected.set(key, (expected.get(key) ?? 0) + count);
    }
  }
  first.close();
  const bytes = readFileSync(pristine);
  for (let round = 0; round < ROUNDS; round++) {
    const own = join(folder, `round-${round}.db`);
    writeFileSync(own, bytes);
    const { store } = openStore(own);
    flush(store);
    for (let hit = 0; hit < 3; hit++) {
      const length = 1 + Math.floor(random() * 40);
      const noise = Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
      writeAt(noise, 8192 + Math.floor(random() * (bytes.length - 8192 - 40)), own);
    }
    const answer = await runQuery(store, USAGE).catch(() => null);
    if (answer?.kind !== 'usage') outcomes.refused += 1;
    else {
      for (const { startMs, group, sums } of answer.rows) {
        expect(sums.prompt_tokens).toBe(expected.get(`${startMs} ${group[0]}`));
      }
      outcomes[answer.rows.length < expected.size ? 'less' : 'whole'] += 1;
    }
    try {
      store.db.close();
    } catch {
      // It is damaged.
    }
    rmSync(own, { force: true });
  }
  expect(outcomes.less + outcomes.refused).toBeGreaterThan(ROUNDS / 15);
  expect(outcomes.whole).toBeGreaterThan(0);
}, 120_000);
