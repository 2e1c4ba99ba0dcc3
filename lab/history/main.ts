import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempDisposable, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, RecordedHistory } from '#history';
import type { RequestRecord } from '#otel/record/registry';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { printFailures, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { toRandom } from '#testkit/random.ts';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { FULL_RECORD } from '#testkit/records/records.ts';

const values = startProgram(
  `npm run lab -- history [options]
  Writes records to a history, and finds some by their ids; then writes them to one whose limit they exceed, and compares its
  sums with those of the records. Exits with 1 if a search takes 100 ms, a sum is wrong, or a file exceeds its limit.
  --records N   (default 1000000)
  --searches N  (default 200)
  --write       writes the results into docs/evidence/history.md`,
  {
    records: { type: 'string', default: '1000000' },
    searches: { type: 'string', default: '200' },
    write: { type: 'boolean', default: false },
  },
);

const MIB = 1024 ** 2;
const PROMISED_MS = 100;
const SMALL_BYTES = 64 * MIB;
/** The records arrive in so many days. */
const DAYS = 3;
const TENANTS = 200;
const EVERY = 5_000;

const START_MS = Date.now() - DAYS * 86_400_000;

const failures: string[] = [];
const recordCount = toCount(values.records);
const searchCount = toCount(values.searches);

/** What the records that were written sum to, and the ids of some. */
interface Fed {
  readonly ids: readonly string[];
  readonly promptTokens: number;
  readonly largestBytes: number;
  readonly seconds: number;
}

/** Makes records much like those of real requests: ids, hashes and figures of their own. */
function createRecords(): (index: number) => RequestRecord {
  const random = toRandom(34);
  return (index) => ({
    ...FULL_RECORD,
    request_id: randomUUID(),
    trace_id: randomBytes(16).toString('hex'),
    response_id: `chatcmpl-${randomUUID()}`,
    client_request_id: randomUUID(),
    ts: new Date(START_MS + Math.floor((index / recordCount) * DAYS * 86_400_000)).toISOString(),
    tenant: `tenant-${Math.floor(random() * TENANTS)}`,
    prefix_hashes: Array.from({ length: 4 }, () => randomBytes(8).toString('hex')),
    e2e_ms: random() * 10_000,
    ttft_ms: random() * 500,
    prompt_tokens: Math.floor(random() * 4_000),
    completion_tokens: Math.floor(random() * 500),
    instance: 'lab',
    seq: index + 1,
  });
}

async function sizeOf(path: string): Promise<number> {
  const sizes = await Promise.all(
    [path, `${path}-wal`].map(async (file) => (await stat(file).catch(() => ({ size: 0 }))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Writes all records, as quickly as the history takes them. */
async function feed(history: RecordedHistory, path: string): Promise<Fed> {
  const make = createRecords();
  const ids: string[] = [];
  let [promptTokens, largestBytes] = [0, 0];
  const startMs = performance.now();
  for (let index = 0; index < recordCount; index++) {
    const record = make(index);
    promptTokens += record.prompt_tokens ?? 0;
    if (index % Math.max(1, Math.floor(recordCount / searchCount)) === 0) ids.push(toId(record, ids.length));
    history.record({ record, encodedSpan: encodeRecord(record) });
    if (index % EVERY !== 0) continue;
    largestBytes = Math.max(largestBytes, await sizeOf(path));
    while ((history.state?.waitingBytes ?? 0) > 8 * MIB) await sleep(5);
  }
  while ((history.state?.records ?? 0) < recordCount) {
    await history.ask({ kind: 'find', id: 'none', limit: 1 });
    await sleep(20);
  }
  largestBytes = Math.max(largestBytes, await sizeOf(path));
  const leftOut = history.state?.leftOut ?? 0;
  if (leftOut > 0) failures.push(`${leftOut} records were left out`);
  return { ids, promptTokens, largestBytes, seconds: (performance.now() - startMs) / 1_000 };
}

/** Each kind of id in turn. */
function toId(record: RequestRecord, at: number): string {
  const ids = [record.request_id, record.trace_id, record.response_id, record.client_request_id];
  return ids[at % ids.length] ?? record.request_id;
}

/** The times of searches, the shortest first. */
async function search(history: RecordedHistory, ids: readonly string[]): Promise<readonly number[]> {
  const times: number[] = [];
  for (const id of ids) {
    const startMs = performance.now();
    const { records } = await history.ask({ kind: 'find', id, limit: 10 });
    times.push(performance.now() - startMs);
    if (records.length !== 1) failures.push(`${id} was not found once`);
  }
  return times.toSorted((a, b) => a - b);
}

async function usageOf(
  history: RecordedHistory,
): Promise<{ readonly answer: Answer<'usage'>; readonly ms: number }> {
  const startMs = performance.now();
  const answer = await history.ask({
    kind: 'usage',
    fromMs: Date.now() - (DAYS + 1) * 86_400_000,
    untilMs: Date.now() + 1,
    by: ['tenant'],
    filters: {},
    step: null,
    limit: 1_000,
  });
  return { answer, ms: performance.now() - startMs };
}

function checkSums({ total }: Answer<'usage'>, { promptTokens }: Fed): void {
  const { requests, prompt_tokens } = total.sums;
  if (requests !== recordCount) failures.push(`${requests} requests are summed, of ${recordCount}`);
  if (prompt_tokens !== promptTokens) failures.push(`${prompt_tokens} tokens are summed, of ${promptTokens}`);
}

const folder = await mkdtempDisposable(join(tmpdir(), 'spangate-history-'));
await using _folder = folder;

async function openHistory(name: string, maxSizeBytes: number) {
  const path = join(folder.path, name);
  const log = {
    warn: (fields: object, message: string) => failures.push(`${message} ${JSON.stringify(fields)}`),
  };
  const history = new RecordedHistory({
    path,
    version: 'lab',
    instanceId: 'lab',
    nowMs: () => START_MS,
    present: () => [],
    log,
  });
  await history.configure({ maxSizeBytes, maxAgeMs: 400 * 86_400_000 });
  // It opens the database first.
  while ((history.state?.usedBytes ?? 0) === 0) await sleep(10);
  return { history, path };
}

const ms = (value: number | undefined) => `${(value ?? 0).toFixed(1)} ms`;
const mib = (bytes: number) => `${(bytes / MIB).toFixed(0)} MiB`;

const large = await openHistory('large.db', 4_096 * MIB);
const fed = await feed(large.history, large.path);
const times = await search(large.history, fed.ids);
const [median, p99, slowest] = [0.5, 0.99, 1].map((p) => times[Math.ceil(p * times.length) - 1]);
if ((slowest ?? 0) >= PROMISED_MS) failures.push(`a search took ${ms(slowest)}`);
const absent = await search(large.history, []).then(async () => {
  const startMs = performance.now();
  await large.history.ask({ kind: 'find', id: randomUUID(), limit: 10 });
  return performance.now() - startMs;
});
const usage = await usageOf(large.history);
checkSums(usage.answer, fed);
const largeBytes = await sizeOf(large.path);
await large.history.stop();

const small = await openHistory('small.db', SMALL_BYTES);
const fedSmall = await feed(small.history, small.path);
if (fedSmall.largestBytes > SMALL_BYTES)
  failures.push(`a file of ${mib(SMALL_BYTES)} had ${mib(fedSmall.largestBytes)}`);
const usageSmall = await usageOf(small.history);
checkSums(usageSmall.answer, fedSmall);
const keptShare = (Date.now() - usageSmall.answer.kept.recordsMs) / (DAYS * 86_400_000);
await small.history.stop();

const { date, commit, machine } = readCircumstances();
const rows = [
  ['Records', `${recordCount.toLocaleString('en')}, of ${DAYS} days and ${TENANTS} tenants`],
  ['Size of the database', `${mib(largeBytes)}, ${Math.round(largeBytes / recordCount)} bytes per record`],
  [
    'Written, with the making of the records',
    `${Math.round(recordCount / fed.seconds).toLocaleString('en')} per second`,
  ],
  [
    `A record found by an id of four kinds (${times.length} searches)`,
    `median ${ms(median)}, p99 ${ms(p99)}, slowest ${ms(slowest)}`,
  ],
  ['An id that no record has', ms(absent)],
  ['Usage of all days by tenant', ms(usage.ms)],
  [`With \`max_size: ${mib(SMALL_BYTES)}\`, the most that the files had`, mib(fedSmall.largestBytes)],
  ['Records that it kept', `those of the last ${(Math.min(1, keptShare) * DAYS).toFixed(1)} days`],
  [
    'Sums, in both',
    failures.some((failure) => failure.includes('summed')) ? 'wrong' : 'those of all records',
  ],
];
const table = [
  '| What | Result |',
  '|---|---|',
  ...rows.map(([what, result]) => `| ${what} | ${result} |`),
].join('\n');
const text = `${date}, commit ${commit}; ${machine}.\n\n${table}`;
console.log(text);
printFailures(failures);
if (values.write) replaceBetween('docs/evidence/history.md', '<!-- begin: history -->', '<!-- end -->', text);
process.exitCode = failures.length === 0 ? 0 : 1;
