import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askAdmin } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { SOAK_FAULTS } from './faults.ts';
import type { Window } from './figures.ts';
import { verifyRecords } from './ledger.ts';
import { toReport } from './report.ts';
import { Traffic } from './traffic.ts';
import type { Sample, SoakGateway } from './world/gateways.ts';
import { startWorld } from './world/start-world.ts';

const USAGE = `npm run soak -- [options]
  Sends mixed requests to two gateways of a fleet while replicas restart and crash, Redis, the collector and workers go
  away, replicas are drained, and configurations and keys change. Exits with 1 if memory, open files or the p99 beside
  that of a direct request grow, if a request fails without a fault that allows it, or if a record is missing that no
  counter and no ledger tells of. Needs redis-server.
  --minutes N      how long (60)
  --per-second N   requests per second (300)
  --write          writes the figures into docs/evidence/reliability.md`;

const values = startProgram(USAGE, {
  minutes: { type: 'string', default: '60' },
  'per-second': { type: 'string', default: '300' },
  write: { type: 'boolean' },
});
const DURATION_S = Number(values.minutes) * 60;
const PER_SECOND = Number(values['per-second']);
if (!(DURATION_S > 0) || !(PER_SECOND > 0)) {
  throw new Error('--minutes and --per-second take numbers above 0');
}

/** Times between two faults, between two samples, and between two lines about the progress. */
const FAULT_PAUSE_MS = 2_000;
const SAMPLE_MS = 1_000;
const PROGRESS_S = 60;
/** Parts of the run with a p99 each, of some minutes in an hour; a short run has fewer, so that each has requests enough. */
const P99_WINDOW_S = Math.max(20, DURATION_S / 24);
/** How long connections and leases may take to end after the last request. */
const QUIET_MS = 30_000;
const MAX_FDS_LEFT = 30;
/** Idle connections to replicas close after seconds: so few files are more than were open at the start. */
const FEW_FDS_LEFT = 10;

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-soak-'));
await using world = await startWorld(folder.path);
const { gateways, replicas, collector, journal, keys } = world;
const fdsAtStart = gateways.map((gateway) => gateway.sample(0).fds);
const problems: string[] = [];
const faults = new Map<string, number>(SOAK_FAULTS.map(({ name }) => [name, 0]));
const samples: readonly Sample[][] = gateways.map(() => []);
const windows: Window[] = [];
const traffic = new Traffic(
  {
    gatewayUrls: [gateways[0].process.url, gateways[1].process.url],
    journal,
    keyFor: (kind) => keys.keyFor(kind),
    replicaUrls: () => replicas.runningUrls,
  },
  PER_SECOND,
);
const startedMs = performance.now();
const elapsedS = () => (performance.now() - startedMs) / 1000;

await Promise.all([injectFaults(), sample()]);
const durationS = elapsedS();
await traffic.stop();
const stats = await Promise.all(gateways.map((gateway) => gateway.process.untilDelivered()));
await Promise.all(gateways.map(untilQuiet));
const fdsAtEnd = gateways.map((gateway) => gateway.sample(0).fds);
if (replicas.wronglySafe > 0) {
  problems.push(`${replicas.wronglySafe} requests were open on replicas that were said to be safe to stop`);
}
for (const { name, process: gateway } of gateways) {
  const code = await gateway.end('SIGTERM');
  if (code !== 0) problems.push(`the ${name} gateway ended with ${code}`);
}
await collector.finish();
const countedAsLost = stats
  .flatMap(({ dropped = 0, rejected = 0, lost = 0 }) => [dropped, rejected, lost])
  .reduce((sum, value) => sum + value, 0);
const report = toReport({
  durationS,
  perSecond: PER_SECOND,
  faults,
  problems,
  windows,
  traffic,
  countedAsLost,
  gateways: gateways.map(({ name, workers }, at) => ({
    name,
    workers,
    samples: samples[at] ?? [],
    fdsAtStart: fdsAtStart[at] ?? 0,
    fdsAtEnd: fdsAtEnd[at] ?? 0,
  })),
  evidence: {
    journal,
    cutIds: replicas.cutIds,
    replicaOf: (id) => collector.replicasOfFailed.get(id),
  },
  arrivedIds: collector.requestIds,
  unansweredRecords: collector.unansweredRecords,
  ledger: await verifyRecords(world.recordFile),
});
console.log(report.text);
for (const problem of report.problems) console.error(`NOT AS PROMISED: ${problem}`);
if (values.write === true && report.problems.length === 0) write(report.text);
process.exitCode = report.problems.length === 0 ? 0 : 1;

async function injectFaults(): Promise<void> {
  for (let turn = 0; ; turn++) {
    await sleep(FAULT_PAUSE_MS);
    const fault = SOAK_FAULTS[turn % SOAK_FAULTS.length] as (typeof SOAK_FAULTS)[number];
    if (elapsedS() > DURATION_S) return;
    try {
      await fault.run(world, Math.floor(turn / SOAK_FAULTS.length));
      faults.set(fault.name, (faults.get(fault.name) ?? 0) + 1);
    } catch (error) {
      problems.push(`at ${Math.round(elapsedS())} s, ${fault.name}: ${String(error)}`);
    }
  }
}

async function sample(): Promise<void> {
  let nextProgressS = PROGRESS_S;
  let throughGateway: number[] = [];
  let direct: number[] = [];
  while (elapsedS() < DURATION_S) {
    await sleep(SAMPLE_MS);
    const atS = elapsedS();
    gateways.forEach((gateway, at) => void samples[at]?.push(gateway.sample(atS)));
    const durations = traffic.takeDurations();
    throughGateway.push(...durations.throughGateway);
    direct.push(...durations.direct);
    if (atS > (windows.length + 1) * P99_WINDOW_S) {
      windows.push({ endS: atS, throughGateway, direct });
      throughGateway = [];
      direct = [];
    }
    if (atS > nextProgressS) {
      nextProgressS += PROGRESS_S;
      printProgress(atS);
    }
  }
}

function printProgress(atS: number): void {
  const { sent, failed } = traffic.counts;
  const memory = samples.map((of) => of.at(-1)?.rssMb.toFixed(0)).join(' and ');
  console.log(
    `${Math.round(atS / 60)} min: ${sent} requests, ${failed} failed, ${memory} MB, ${problems.length} problems`,
  );
}

/** Connections of clients close, and every lease is given back; connections to replicas may be kept. */
async function untilQuiet(gateway: SoakGateway, at: number): Promise<void> {
  const deadlineMs = performance.now() + QUIET_MS;
  for (;;) {
    const { replicas: list } = (await askAdmin(gateway.process.adminUrl, 'GET', '/admin/replicas')) as {
      replicas: { inflight: number }[];
    };
    const inflight = list.reduce((sum, replica) => sum + replica.inflight, 0);
    const left = gateway.sample(0).fds - (fdsAtStart[at] ?? 0);
    const isOver = performance.now() > deadlineMs;
    if (inflight === 0 && left <= (isOver ? MAX_FDS_LEFT : FEW_FDS_LEFT)) return;
    if (isOver) {
      problems.push(
        `after the last request, the ${gateway.name} gateway has ${inflight} in flight and ${left} more files open`,
      );
      return;
    }
    await sleep(200);
  }
}

function write(text: string): void {
  const { date, commit, machine } = readCircumstances();
  const head = `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with other work.`;
  replaceBetween('docs/evidence/reliability.md', '<!-- soak -->', '<!-- end of soak -->', `${head}\n${text}`);
}
