import { readdirSync, readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { startProgram } from '../support/program.ts';
import { readCircumstances, replaceBetween } from '../support/results.ts';
import { median } from '../support/statistics.ts';
import { SOAK_FAULTS, startReplicas, type Testbed } from './faults.ts';
import { type Sample, type Trend, toP99s, toTrend } from './figures.ts';
import { startSpanCollector } from './span-collector.ts';
import { Traffic } from './traffic.ts';

const USAGE = `npm run soak -- [options]
  Sends mixed requests to a gateway while replicas restart and crash, the collector goes away, replicas are drained, the
  configuration is read again, and clients leave. Exits with 1 if memory, open files or p99 grow, if requests fail
  without need, or if a record is missing that no counter tells of.
  --minutes N      how long (60)
  --per-second N   requests per second (300)
  --write          writes the figures into docs/reliability.md`;

const values = startProgram(USAGE, {
  minutes: { type: 'string', default: '60' },
  'per-second': { type: 'string', default: '300' },
  write: { type: 'boolean' },
});
const DURATION_S = Number(values.minutes) * 60;
const PER_SECOND = Number(values['per-second']);
if (!(DURATION_S > 0) || !(PER_SECOND > 0))
  throw new Error('--minutes and --per-second take numbers above 0');

/** Times between two faults, between two samples, and of a window of latencies. */
const FAULT_PAUSE_MS = 3_000;
const SAMPLE_MS = 1_000;
const P99_WINDOW_SAMPLES = Math.max(10, Math.round(DURATION_S / 12));
const MB = 1024 ** 2;
/** What a run may grow by between its second and its last quarter: garbage that V8 has not collected yet. */
const MAX_GROWTH_MB = { rssMb: 64, heapMb: 16, externalMb: 16 } as const;
const MAX_FD_GROWTH = 50;
/** The last quarter's p99 to the second quarter's. Other work on the machine shows in it. */
const MAX_P99_GROWTH = 3;

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-soak-'));
await using collector = await startSpanCollector();
await using replicas = await startReplicas();
const memoryFile = join(folder.path, 'memory.json');
await using gateway = await startGateway(folder.path, toConfig(), {
  NODE_OPTIONS: `--import=${join(import.meta.dirname, 'report-memory.ts')}`,
  SOAK_MEMORY_FILE: memoryFile,
});
const fdsAtStart = countFds(gateway.pid);
const problems: string[] = [];
const samples: Sample[] = [];
const latencies: number[][] = [[]];
const traffic = new Traffic(gateway.url, PER_SECOND);
const startedMs = performance.now();
const elapsedS = () => (performance.now() - startedMs) / 1000;

const [faultCount] = await Promise.all([
  injectFaults({ adminUrl: gateway.adminUrl, replicas, collector }),
  sample(),
]);
await traffic.stop();
const stats = await gateway.untilDelivered();
await untilFewFds(gateway);
report();
process.exitCode = problems.length === 0 ? 0 : 1;

async function injectFaults(testbed: Testbed): Promise<number> {
  let turn = 0;
  while (elapsedS() < DURATION_S - 2 * (FAULT_PAUSE_MS / 1000)) {
    await sleep(FAULT_PAUSE_MS);
    const fault = SOAK_FAULTS[turn % SOAK_FAULTS.length];
    await fault?.run(testbed, turn);
    turn++;
  }
  return turn;
}

async function sample(): Promise<void> {
  while (elapsedS() < DURATION_S) {
    await sleep(SAMPLE_MS);
    samples.push(takeSample());
    latencies.at(-1)?.push(...traffic.takeLatencies());
    if (samples.length % P99_WINDOW_SAMPLES === 0) latencies.push([]);
  }
}

function takeSample(): Sample {
  const rssKb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1];
  const { heapUsed, external } = readMemory();
  return {
    atS: elapsedS(),
    rssMb: Number(rssKb) / 1024,
    heapMb: heapUsed / MB,
    externalMb: external / MB,
    fds: countFds(gateway.pid),
  };
}

/** A file that is being written may be empty: then the last sample stands. */
function readMemory(): { heapUsed: number; external: number } {
  try {
    return JSON.parse(readFileSync(memoryFile, 'utf8'));
  } catch {
    const last = samples.at(-1);
    return { heapUsed: (last?.heapMb ?? 0) * MB, external: (last?.externalMb ?? 0) * MB };
  }
}

function countFds(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** The connections of clients are closed; those to replicas may be kept. */
async function untilFewFds({ pid }: GatewayProcess): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (countFds(pid) > fdsAtStart + MAX_FD_GROWTH && performance.now() < deadlineMs) await sleep(200);
}

function report(): void {
  const { sent, succeeded, aborted, failed } = traffic.counts;
  const missing = traffic.requestIds.filter((id) => !collector.requestIds.has(id)).length;
  const lost = (stats.dropped ?? 0) + (stats.rejected ?? 0);
  const p99s = toP99s(latencies);
  const trends = {
    rssMb: toTrend(samples, 'rssMb'),
    heapMb: toTrend(samples, 'heapMb'),
    externalMb: toTrend(samples, 'externalMb'),
    fds: toTrend(samples, 'fds'),
  };
  const fdsAtEnd = countFds(gateway.pid);
  const quarter = Math.max(1, Math.floor(p99s.length / 4));
  const [earlyP99, lateP99] = [median(p99s.slice(quarter, 2 * quarter + 1)), median(p99s.slice(-quarter))];
  for (const name of ['rssMb', 'heapMb', 'externalMb'] as const) {
    const { early, late } = trends[name];
    if (late - early > MAX_GROWTH_MB[name])
      problems.push(`${name} grew from ${early.toFixed(1)} to ${late.toFixed(1)}`);
  }
  if (fdsAtEnd > fdsAtStart + MAX_FD_GROWTH)
    problems.push(`${fdsAtEnd} files are open at the end, ${fdsAtStart} at the start`);
  if (lateP99 > MAX_P99_GROWTH * earlyP99)
    problems.push(`p99 grew from ${earlyP99.toFixed(0)} to ${lateP99.toFixed(0)} ms`);
  if (missing > lost) problems.push(`${missing} records are missing, ${lost} are counted as lost`);
  const needless = traffic.failedBetweenMs.filter(
    ([from, to]) => !replicas.endedMs.some((endedMs) => endedMs >= from && endedMs <= to),
  ).length;
  if (needless > 0) problems.push(`${needless} requests failed while no replica ended`);
  const text = [
    `${(DURATION_S / 60).toFixed(DURATION_S % 60 === 0 ? 0 : 1)} minutes, ${sent} requests (${Math.round(sent / DURATION_S)} per second), ${faultCount} faults: ` +
      `${succeeded} as they should be, ${aborted} left by their clients, ${failed} failed, ${failed - needless} of them while a replica ended.`,
    `${traffic.requestIds.length} requests were answered; ${traffic.requestIds.length - missing} of their records arrived, ${lost} were counted as lost.`,
    '',
    '| figure | second quarter | last quarter | slope per hour |',
    '|---|---|---|---|',
    toRow('memory of the process (RSS, MB)', trends.rssMb),
    toRow('heap in use (MB)', trends.heapMb),
    toRow('external memory (MB)', trends.externalMb),
    toRow('open files', trends.fds),
    `| p99 of a request (ms) | ${earlyP99.toFixed(0)} | ${lateP99.toFixed(0)} | |`,
    '',
    `Open files: ${fdsAtStart} before the first request, ${fdsAtEnd} after the last.`,
  ].join('\n');
  console.log(text);
  for (const [reason, count] of traffic.failures) console.log(`failed: ${count} × ${reason}`);
  for (const problem of problems) console.error(`NOT AS PROMISED: ${problem}`);
  if (values.write === true && problems.length === 0) write(text);
}

function toRow(name: string, { early, late, perHour }: Trend): string {
  return `| ${name} | ${early.toFixed(1)} | ${late.toFixed(1)} | ${perHour >= 0 ? '+' : ''}${perHour.toFixed(1)} |`;
}

function write(text: string): void {
  const { date, commit, machine } = readCircumstances();
  const head = `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with other work.`;
  replaceBetween('docs/reliability.md', '<!-- soak -->', '<!-- end of soak -->', `${head}\n${text}`);
}

function toConfig(): object {
  return {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: 1 },
    state_dir: join(folder.path, 'state'),
    replicas: replicas.list.map(({ name, url }) => ({ name, url, models: ['m'], engine: 'vllm' })),
    export: { endpoint: collector.url, interval: '500ms', retry: { initial: '100ms', max: '1s' } },
    health: { interval: '1s' },
    metrics: { otlp: false }, // calls with records are counted here
  };
}
