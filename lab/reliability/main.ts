import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  EXPORT,
  type GatewayProcess,
  type Stats,
  startGatewayProcess,
} from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { startProgress } from '#testkit/programs/progress.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { percentile } from '#testkit/programs/statistics.ts';
import { countTaken, FAULTS, type Fault } from './faults.ts';
import {
  CONCURRENCY,
  type LoadJob,
  type LoadMessage,
  type LoadResult,
  type Replicas,
} from './load-messages.ts';

const USAGE = `npm run reliability -- [options]
  Measures what each fault costs requests and records, and writes the table of docs/evidence/reliability.md. Exits with 1 if a
  request failed that should not, a record is missing that no counter tells of, or a fault had no effect. Takes a few minutes.
  --quick  fewer requests; prints the table and writes nothing`;

const { quick = false } = startProgram(USAGE, { quick: { type: 'boolean' } });
const REQUESTS = quick ? 500 : 4000;
/** With answers at once, nothing would be open when a replica is killed. */
const MIDWAY_GAP_MS = 3;
const WARM_UP = quick ? 100 : 1000;

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

const loadProcess = fork(new URL('./load.ts', import.meta.url));
const rows: Row[] = [];
const progress = startProgress(FAULTS.length);
for (const fault of FAULTS) {
  const row = await progress.during(fault.name, () => measure(fault));
  rows.push(row);
  console.log(toLine(row));
}
loadProcess.disconnect();
if (!quick) updateDocument(rows);
const broken = rows.filter((row) => !isAsPromised(row));
for (const { fault } of broken) console.error(`NOT AS PROMISED: ${fault.name}`);
process.exitCode = broken.length === 0 ? 0 : 1;

/** Loads a healthy gateway and one with the fault in turn, so that both see the same noise of the machine. */
async function measure(fault: Fault): Promise<Row> {
  await using testbed = await startTestbed(fault);
  const { healthy, faulty, collector } = testbed;
  await testbed.load(WARM_UP);
  await Promise.all([healthy.untilDelivered(), faulty.untilDelivered()]);

  const firstFaultyCall = collector.calls.length;
  if (fault.collector === 'refused') await collector.close();
  else if (fault.collector !== undefined) collector.answerAlways(fault.collector);
  const result = await testbed.load(REQUESTS, fault.midway);
  const before = await faulty.stats();
  const restarted = fault.ending === undefined ? null : await testbed.restart(fault.ending);
  const faultyCallCount = collector.calls.length - firstFaultyCall;

  // A killed process cannot save its queue.
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
    healthyP99Ms: percentile(result.healthy.latenciesMs, 0.99),
    p99Ms: percentile(result.faulty.latenciesMs, 0.99),
    failedCalls: read(restarted === null ? after : before, 'failed_calls'),
    lost: WARM_UP + REQUESTS - kept,
    countedAsLost: countLost(restarted === null ? [after] : [before, after]),
  };
}

/** Two gateways with replicas and a collector each. */
interface Testbed extends AsyncDisposable {
  readonly healthy: GatewayProcess;
  readonly faulty: GatewayProcess;
  /** The faulty gateway's. */
  readonly collector: FakeCollector;
  load(requests: number, midway?: LoadJob['midway']): Promise<LoadResult>;
  /** Ends the faulty gateway and starts it again with the same state. */
  restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<GatewayProcess>;
}

async function startTestbed({ queueSize, midway }: Fault): Promise<Testbed> {
  const replicas = await ask<Replicas>(loadProcess, {
    kind: 'replicas',
    gapMs: midway === undefined ? 0 : MIDWAY_GAP_MS,
  });
  const [healthyCollector, collector] = await Promise.all([startFakeCollector(), startFakeCollector()]);
  const createFolder = () => mkdtempDisposable(join(tmpdir(), 'spangate-reliability-'));
  const [healthyFolder, folder] = await Promise.all([createFolder(), createFolder()]);
  const settings = { folder: folder.path, collectorUrl: collector.url, replicas: replicas.faulty, queueSize };
  const healthySettings = {
    folder: healthyFolder.path,
    collectorUrl: healthyCollector.url,
    replicas: replicas.healthy,
  };
  const [healthy, faulty] = await Promise.all([
    startGatewayProcess(healthySettings),
    startGatewayProcess(settings),
  ]);
  let running = faulty;
  const sides: LoadJob['sides'] = [
    { name: 'healthy', url: healthy.url },
    { name: 'faulty', url: faulty.url },
  ];
  return {
    healthy,
    faulty,
    collector,
    load: (requests, midway) =>
      ask(loadProcess, { kind: 'load', sides, requests, midway, adminUrl: faulty.adminUrl }),
    async restart(signal) {
      await faulty.end(signal);
      running = await startGatewayProcess(settings);
      return running;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([healthy.end('SIGTERM'), running.end('SIGTERM')]);
      await Promise.all([healthyCollector.close(), collector.close()]);
      await Promise.all([healthyFolder.remove(), folder.remove()]);
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

/** Records that the gateway counted as lost, over its runs. */
function countLost(runs: readonly Stats[]): number {
  return runs.reduce((sum, stats) => sum + read(stats, 'dropped') + read(stats, 'rejected'), 0);
}

function isAsPromised({ fault, failed, failedCalls, lost, countedAsLost }: Row): boolean {
  if (fault.failsCalls === true && failedCalls === 0) return false;
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

/** Writes the table and its circumstances into docs/evidence/reliability.md. */
function updateDocument(measured: readonly Row[]): void {
  const healthyMs = measured.map(({ healthyP99Ms }) => healthyP99Ms).toSorted((a, b) => a - b);
  const { batchSize, intervalMs, retryInitialMs, retryMaxMs, timeoutMs } = EXPORT;
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with other work.`,
    `${CONCURRENCY} requests at a time, ${WARM_UP} to warm up and ${REQUESTS} measured; batches of ${batchSize}, ` +
      `interval ${intervalMs} ms, back-off from ${retryInitialMs} to ${retryMaxMs} ms, time-out of a call ${timeoutMs} ms.`,
    `p99 of the healthy gateway: ${healthyMs[0]?.toFixed(1)} to ${healthyMs.at(-1)?.toFixed(1)} ms.`,
    '',
    '| fault | requests | failed requests | p99 to healthy | failed calls | records lost | records counted as lost |',
    '|---|---|---|---|---|---|---|',
    ...measured.map(toLine),
  ].join('\n');
  replaceBetween(
    'docs/evidence/reliability.md',
    '<!-- measured -->',
    '<!-- end of what was measured -->',
    text,
  );
}
