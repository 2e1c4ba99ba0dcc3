import { mkdtempDisposable, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSimulatedReplica } from '#simulate';
import { askAdmin, startGateway } from '#testkit/programs/gateway-process.ts';
import { readResidentBytes } from '#testkit/programs/process-memory.ts';
import { readCpu, toSpentUs } from '#testkit/programs/process-tree.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { printFailures, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

const values = startProgram(
  `npm run lab -- history/limit [options]
  Sends requests to a gateway until the history has reached the least limit that it takes, and goes on for long. Compares its
  sums with what the clients were answered. Exits with 1 if a sum differs, a record is left out, the newest cannot be
  found, a condition of the history is told, or its files exceed the limit at any look.
  --minutes N  at the limit (default 60)
  --rate N     requests per second, at most (default 300)
  --write      writes the results into docs/evidence/history.md`,
  {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '300' },
    write: { type: 'boolean', default: false },
  },
);

const MIB = 1024 ** 2;
const LIMIT_BYTES = 32 * MIB;
const CLIENTS = 16;
const LOOK_MS = 1_000;
/** So many of the newest records are looked up at the end. */
const NEWEST = 100;
/** By then the limit must be reached. */
const MAX_FILL_MS = 30 * 60_000;

const rate = toCount(values.rate);
const minutes = toCount(values.minutes);
const failures: string[] = [];
const sums = { requests: 0, prompt_tokens: 0, completion_tokens: 0 };
const newest: string[] = [];
const most = { bytes: 0, residentBytes: 0 };

const replica = createSimulatedReplica({ name: 'a', models: ['m'], ttftMs: 5, gapMs: 0, tokens: 12 });
const { url: replicaUrl } = await replica.start();
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.end());
});
const collectorUrl = `http://127.0.0.1:${await listen(collector)}`;
await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-limit-'));
const stateDir = join(folder.path, 'state');
const gateway = await startGateway(folder.path, {
  gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
  state_dir: stateDir,
  history: { max_size: '32MiB' },
  replicas: [{ name: 'a', url: replicaUrl, models: ['m'] }],
  export: { endpoint: collectorUrl },
});

async function send(index: number): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'X-Tenant': `tenant-${index % 200}` },
    body: JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: `${index} ${'word '.repeat(1 + (index % 400))}` }],
    }),
  });
  const { usage } = (await response.json()) as { usage: Readonly<Record<string, number>> };
  sums.requests += 1;
  sums.prompt_tokens += usage.prompt_tokens ?? 0;
  sums.completion_tokens += usage.completion_tokens ?? 0;
  newest.push(response.headers.get('x-request-id') ?? '');
  if (newest.length > NEWEST) newest.shift();
}

/**
 * Sends at the rate until `isOver`, from clients that each wait for their answer: a busy machine gets fewer, and no crowd
 * of those that are late. Resolves when all are answered.
 */
async function load(isOver: () => boolean): Promise<void> {
  const everyMs = (CLIENTS / rate) * 1_000;
  let index = 0;
  const client = async () => {
    while (!isOver()) {
      const dueMs = performance.now() + everyMs;
      await send(index++).catch((error: unknown) => failures.push(`a request failed: ${String(error)}`));
      await sleep(Math.max(0, dueMs - performance.now()));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

async function sizeOfHistory(): Promise<number> {
  const path = join(stateDir, 'history.db');
  const sizes = await Promise.all(
    [path, `${path}-wal`].map(async (file) => (await stat(file).catch(() => ({ size: 0 }))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

interface Usage {
  readonly total: Readonly<Record<string, number>>;
  readonly kept: { readonly records_since: string };
}

const readUsage = async () =>
  (await askAdmin(gateway.adminUrl, 'GET', '/admin/usage?since=2d&by=tenant')) as Usage;

/** Looks once per second, until `isEnough`. */
async function look(isEnough: () => Promise<boolean>): Promise<void> {
  while (!(await isEnough())) {
    most.bytes = Math.max(most.bytes, await sizeOfHistory());
    most.residentBytes = Math.max(most.residentBytes, readResidentBytes(gateway.pid));
    const { conditions } = (await askAdmin(gateway.adminUrl, 'GET', '/admin/conditions')) as {
      conditions: readonly { readonly id: string; readonly sentence: string }[];
    };
    for (const { id, sentence } of conditions)
      if (id.startsWith('history')) failures.push(`${id}: ${sentence}`);
    await sleep(LOOK_MS);
  }
}

/** Since when the oldest record is kept: epoch milliseconds. */
const readOldestMs = async () => Date.parse((await readUsage()).kept.records_since);

const beginMs = Date.now();
let isOver = false;
const loading = load(() => isOver);
const firstMs = await readOldestMs();
await look(async () => {
  if (Date.now() - beginMs > MAX_FILL_MS) throw new Error('the limit was not reached: send more per second');
  return (await readOldestMs()) > firstMs;
});
const fillMinutes = (Date.now() - beginMs) / 60_000;
const filled = sums.requests;
const cpu = readCpu(gateway.pid);
const endMs = Date.now() + minutes * 60_000;
await look(async () => Date.now() >= endMs);
const cpuUs = toSpentUs(cpu, readCpu(gateway.pid));
const atLimit = sums.requests - filled;
isOver = true;
await loading;

const { total } = await readUsage();
for (const [name, expected] of Object.entries(sums)) {
  if (total[name] !== expected)
    failures.push(`the history sums ${total[name]} ${name}, clients were answered ${expected}`);
}
for (const id of newest) {
  const found = (await askAdmin(gateway.adminUrl, 'GET', `/admin/records/${id}`).catch(() => null)) as {
    records: readonly unknown[];
  } | null;
  if (found?.records.length !== 1) failures.push(`${id}, one of the newest, is not found once`);
}
if (most.bytes > LIMIT_BYTES) failures.push(`the files had ${(most.bytes / MIB).toFixed(1)} MiB`);
const keptMinutes = (Date.now() - (await readOldestMs())) / 60_000;
await gateway.end('SIGTERM');
await replica.close();
await closeServer(collector);

const { date, commit, machine } = readCircumstances();
const rows = [
  ['Until the limit of 32 MiB', `${fillMinutes.toFixed(1)} minutes, ${filled.toLocaleString('en')} requests`],
  ['At the limit', `${minutes} minutes, ${atLimit.toLocaleString('en')} requests`],
  ['The most that its files had', `${(most.bytes / MIB).toFixed(1)} MiB`],
  ['The most memory of the gateway', `${(most.residentBytes / MIB).toFixed(0)} MiB`],
  ['CPU of the gateway per request, with all else that it does', `${Math.round(cpuUs / atLimit)} µs`],
  ['Records kept at the end', `those of the last ${keptMinutes.toFixed(1)} minutes`],
  [
    'Requests and tokens of all minutes',
    failures.some((failure) => failure.includes('sums')) ? 'wrong' : 'those that clients were answered',
  ],
  ['Conditions of the history', failures.some((failure) => failure.startsWith('history')) ? 'some' : 'none'],
];
const text = `${date}, commit ${commit}; ${machine}.\n\n| What | Result |\n|---|---|\n${rows
  .map(([what, result]) => `| ${what} | ${result} |`)
  .join('\n')}`;
console.log(text);
printFailures(failures);
if (values.write) replaceBetween('docs/evidence/history.md', '<!-- begin: limit -->', '<!-- end -->', text);
process.exitCode = failures.length === 0 ? 0 : 1;
