import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type FakeCollector, startFakeCollector } from '../../test/support/fake-collector.ts';
import { countTaken, FAULTS, type Fault } from './faults.ts';
import {
  ADMIN_TOKEN,
  createFolder,
  EXPORT,
  type GatewayProcess,
  removeFolder,
  type Stats,
  startGatewayProcess,
} from './gateway-process.ts';
import {
  CONCURRENCY,
  type LoadJob,
  type LoadMessage,
  type LoadResult,
  type Replicas,
} from './load-messages.ts';

/**
 * Measures what each fault costs requests and records, and writes the table of docs/reliability.md:
 * `npm run reliability`; with `-- --quick` a smaller run that only prints. Exits 1 if a request failed that need
 * not, or a record went missing that no counter tells of.
 */

const DOCUMENT = join(import.meta.dirname, '../../docs/reliability.md');
const isQuick = process.argv.includes('--quick');
const REQUESTS = isQuick ? 500 : 4000;
/** A replica that answers at once has nothing under way when it is killed. */
const MIDWAY_GAP_MS = 3;
const WARM_UP = isQuick ? 100 : 1000;

interface Row {
  readonly fault: Fault;
  readonly requests: number;
  readonly failed: number;
  readonly healthyP99Ms: number;
  readonly p99Ms: number;
  readonly failedCalls: number;
  readonly lost: number;
  readonly countedAsLost: number;
}

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
const loadProcess = fork(new URL('./load.ts', import.meta.url));
const rows: Row[] = [];
for (const fault of FAULTS) {
  const row = await measure(fault);
  rows.push(row);
  console.log(toLine(row));
}
loadProcess.disconnect();
if (!isQuick) await updateDocument(rows);
const broken = rows.filter((row) => !isAsPromised(row));
for (const { fault } of broken) console.error(`NOT AS PROMISED: ${fault.name}`);
process.exitCode = broken.length === 0 ? 0 : 1;

/** Two gateways of the same kind take turns, one of them with the fault: the noise of the machine is the same. */
async function measure(fault: Fault): Promise<Row> {
  await using setting = await setUp(fault);
  const { healthy, faulty, collector } = setting;
  await setting.load(WARM_UP);
  await Promise.all([healthy.untilDelivered(), faulty.untilDelivered()]);

  const firstFaultyCall = collector.calls.length;
  if (fault.collector === 'refused') await collector.close();
  else if (fault.collector !== undefined) collector.answerAlways(fault.collector);
  const result = await setting.load(REQUESTS, fault.midway);
  const before = await faulty.stats();
  const restarted = fault.ending === undefined ? null : await setting.restart(fault.ending);
  const faultyCallCount = collector.calls.length - firstFaultyCall;

  // A process that is killed cannot put anything aside.
  const restoredCount = fault.ending === 'SIGTERM' ? read(before, 'queued') : 0;
  await using back = fault.collector === 'refused' ? await startFakeCollector(collector.port) : null;
  collector.answerAlways({});
  const after = await (restarted ?? faulty).untilDelivered(restoredCount);

  const taken = countTaken([...collector.calls, ...(back?.calls ?? [])]);
  const kept = taken - faultyCallCount * (fault.refusedPerCall ?? 0);
  return {
    fault,
    requests: REQUESTS,
    failed: result.faulty.failed,
    healthyP99Ms: percentile99(result.healthy.latenciesMs),
    p99Ms: percentile99(result.faulty.latenciesMs),
    failedCalls: read(restarted === null ? after : before, 'failed_calls'),
    lost: WARM_UP + REQUESTS - kept,
    countedAsLost: countLost(restarted === null ? [after] : [before, after]),
  };
}

/** Two gateways with replicas and a collector each. */
interface Setting extends AsyncDisposable {
  readonly healthy: GatewayProcess;
  readonly faulty: GatewayProcess;
  /** The faulty gateway's. */
  readonly collector: FakeCollector;
  load(requests: number, midway?: LoadJob['midway']): Promise<LoadResult>;
  /** Ends the faulty gateway and starts it again on the same state. */
  restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<GatewayProcess>;
}

async function setUp({ queueSize, midway }: Fault): Promise<Setting> {
  const replicas = await ask<Replicas>(loadProcess, {
    kind: 'replicas',
    gapMs: midway === undefined ? 0 : MIDWAY_GAP_MS,
  });
  const [healthyCollector, collector] = await Promise.all([startFakeCollector(), startFakeCollector()]);
  const [healthyFolder, folder] = await Promise.all([createFolder(), createFolder()]);
  const settings = { folder, collectorUrl: collector.url, replicas: replicas.faulty, queueSize };
  const healthySettings = {
    folder: healthyFolder,
    collectorUrl: healthyCollector.url,
    replicas: replicas.healthy,
  };
  const [healthy, faulty] = await Promise.all([
    startGatewayProcess(healthySettings),
    startGatewayProcess(settings),
  ]);
  let running = faulty;
  const sides: LoadJob['sides'] = [
    { name: 'healthy', url: healthy.url, adminUrl: healthy.adminUrl },
    { name: 'faulty', url: faulty.url, adminUrl: faulty.adminUrl },
  ];
  return {
    healthy,
    faulty,
    collector,
    load: (requests, midway) =>
      ask(loadProcess, { kind: 'load', sides, requests, midway, adminToken: ADMIN_TOKEN }),
    async restart(signal) {
      await faulty.end(signal);
      running = await startGatewayProcess(settings);
      return running;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([healthy.end('SIGTERM'), running.end('SIGTERM')]);
      await Promise.all([healthyCollector.close(), collector.close()]);
      await Promise.all([removeFolder(healthyFolder), removeFolder(folder)]);
    },
  };
}

async function ask<Answer>(child: ChildProcess, message: LoadMessage): Promise<Answer> {
  child.send(message);
  const [answer] = (await once(child, 'message')) as [Answer];
  return answer;
}

function read(stats: Stats, name: string): number {
  const value = stats[name];
  if (value === undefined) throw new Error(`GET /admin/stats has no ${name}`);
  return value;
}

/** What the gateway itself says is lost, over its runs. */
function countLost(runs: readonly Stats[]): number {
  return runs.reduce((sum, stats) => sum + read(stats, 'dropped') + read(stats, 'rejected'), 0);
}

/** Rank ⌈0.99·n⌉ of n. */
function percentile99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;
}

function isAsPromised({ fault, failed, lost, countedAsLost }: Row): boolean {
  const mayFail = fault.mayFailRequests === true ? CONCURRENCY : 0;
  return failed <= mayFail && (lost === countedAsLost || fault.mayLoseUncounted === true);
}

function toLine({
  fault,
  requests,
  failed,
  healthyP99Ms,
  p99Ms,
  failedCalls,
  lost,
  countedAsLost,
}: Row): string {
  const ratio = (p99Ms / healthyP99Ms).toFixed(2);
  const cells = [fault.name, requests, failed, ratio, failedCalls, lost, countedAsLost];
  return `| ${cells.join(' | ')} |`;
}

/** Puts the table, and what it was made with, between the two marks of the document. */
async function updateDocument(measured: readonly Row[]): Promise<void> {
  const healthyMs = measured.map(({ healthyP99Ms }) => healthyP99Ms).toSorted((a, b) => a - b);
  const { batchSize, intervalMs, retryInitialMs, retryMaxMs, timeoutMs } = EXPORT;
  const text = [
    `Measured on ${new Date().toISOString().slice(0, 10)} at commit ${commit}, with Node ${process.version} on ` +
      `${availableParallelism()} cores of ${process.platform} ${process.arch}, shared with other work.`,
    `${CONCURRENCY} requests at a time, ${WARM_UP} to warm up and ${REQUESTS} measured; batches of ${batchSize}, ` +
      `interval ${intervalMs} ms, back-off from ${retryInitialMs} to ${retryMaxMs} ms, time-out of a call ${timeoutMs} ms.`,
    `p99 of the healthy gateway: ${healthyMs[0]?.toFixed(1)} to ${healthyMs.at(-1)?.toFixed(1)} ms.`,
    '',
    '| fault | requests | failed requests | p99 to healthy | failed calls | records lost | records counted as lost |',
    '|---|---|---|---|---|---|---|',
    ...measured.map(toLine),
  ].join('\n');
  const document = await readFile(DOCUMENT, 'utf8');
  const marks = /(<!-- measured -->\n).*(<!-- end of what was measured -->)/s;
  if (!marks.test(document)) throw new Error('docs/reliability.md has lost its marks');
  await writeFile(
    DOCUMENT,
    document.replace(marks, (_, begin: string, end: string) => `${begin}${text}\n${end}`),
  );
}
