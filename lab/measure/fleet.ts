import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMembershipFile, createRedisStore, type Fleet, FleetLog, openFleet } from '#fleet';
import { Drains } from '#replicas/drains';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { startProgram } from '#testkit/programs/program.ts';
import { type RedisServer, startRedisServer } from '#testkit/servers/redis-server.ts';

const USAGE = `npm run lab -- measure/fleet
  Measures what shared state costs a Redis server and a gateway: the table of docs/evidence/fleet.md. All members of a fleet run
  in this process, without the gateways around them. Needs redis-server. Takes about three minutes.`;

interface Case {
  readonly title: string;
  readonly gatewayCount: number;
  readonly replicaCount: number;
  /** Replicas with requests in flight on every gateway; their number changes every second. */
  readonly busyCount: number;
  readonly drainedCount: number;
}

const CASES: readonly Case[] = [
  { title: 'nothing in flight', gatewayCount: 3, replicaCount: 20, busyCount: 0, drainedCount: 0 },
  { title: 'all replicas busy', gatewayCount: 3, replicaCount: 20, busyCount: 20, drainedCount: 0 },
  { title: 'all replicas busy', gatewayCount: 10, replicaCount: 50, busyCount: 50, drainedCount: 0 },
  { title: 'nothing in flight', gatewayCount: 50, replicaCount: 200, busyCount: 0, drainedCount: 0 },
  { title: 'all replicas busy', gatewayCount: 50, replicaCount: 200, busyCount: 200, drainedCount: 0 },
  { title: 'all drained', gatewayCount: 50, replicaCount: 200, busyCount: 0, drainedCount: 200 },
];

const MEASURED_MS = 20_000;
const WHY = { reason: null, at: new Date().toISOString() };

/** What the server and the gateways have used so far. */
interface Reading {
  readonly atMs: number;
  readonly commands: number;
  readonly inBytes: number;
  readonly outBytes: number;
  readonly redisCpuMs: number;
  readonly gatewaysCpuMs: number;
}

startProgram(USAGE, {});
console.log(
  '| gateways × replicas | | commands/s | to Redis, kB/s | from Redis, kB/s | Redis, % of a core | a gateway, % |',
);
console.log('|---|---|---:|---:|---:|---:|---:|');
for (const measured of CASES) console.log(await measure(measured));
process.exit(0);

async function measure(measured: Case): Promise<string> {
  const { title, gatewayCount, replicaCount, busyCount } = measured;
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-measure-')));
  const redis = cleanUp.use(await startRedisServer());
  const fleets = await Promise.all(
    Array.from({ length: gatewayCount }, (_, index) =>
      open(join(folder.path, `gw-${index}`), `gw-${index}`, redis.url, busyCount),
    ),
  );
  await Promise.all(fleets.map((fleet) => fleet.join()));
  for (let index = 0; index < measured.drainedCount; index++) fleets[0]?.set(toName(index), true, WHY);
  await sleep(8_000);

  const before = await read(redis);
  await sleep(MEASURED_MS);
  const after = await read(redis);
  const seconds = (after.atMs - before.atMs) / 1_000;
  const rate = (key: Exclude<keyof Reading, 'atMs'>) => (after[key] - before[key]) / seconds;
  await Promise.all(fleets.map((fleet) => fleet.leave()));
  const cells = [
    `${gatewayCount} × ${replicaCount}`,
    title,
    rate('commands').toFixed(0),
    (rate('inBytes') / 1_000).toFixed(0),
    (rate('outBytes') / 1_000).toFixed(0),
    (rate('redisCpuMs') / 10).toFixed(1),
    (rate('gatewaysCpuMs') / 10 / gatewayCount).toFixed(2),
  ];
  return `| ${cells.join(' | ')} |`;
}

async function open(stateDir: string, name: string, url: string, busyCount: number): Promise<Fleet> {
  const drains = new Drains({
    shared: new SharedState(allocateSharedState(1)),
    file: { read: async () => new Map(), write: async () => undefined, close: async () => undefined },
    barrier: async () => [],
    log: { debug: () => undefined },
  });
  const quiet = () => undefined;
  return await openFleet(name, {
    version: '0.0.0',
    store: createRedisStore({ url: () => url, prefix: 'spangate' }),
    file: createMembershipFile(stateDir, console),
    drains,
    background: () => new Map(),
    backgroundUntilMs: () => 0,
    backgroundLimitMs: () => 0,
    inflight: () =>
      new Map(
        Array.from({ length: busyCount }, (_, index) => [toName(index), 1 + Math.floor(60 * Math.random())]),
      ),
    clientLimits: {
      takeChanged: () => new Map(),
      onForgotten: () => undefined,
      charge: () => undefined,
      takeInflight: () => new Map(),
      maxInflightOf: () => null,
      setShare: () => undefined,
      divideBy: () => undefined,
    },
    log: new FleetLog({ info: quiet, warn: quiet, error: console.error }),
  });
}

async function read(redis: RedisServer): Promise<Reading> {
  const { user, system } = process.cpuUsage();
  const info = await redis.command('info', 'everything');
  const figure = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return {
    atMs: performance.now(),
    commands: figure('total_commands_processed'),
    inBytes: figure('total_net_input_bytes'),
    outBytes: figure('total_net_output_bytes'),
    redisCpuMs: 1_000 * (figure('used_cpu_user') + figure('used_cpu_sys')),
    gatewaysCpuMs: (user + system) / 1_000,
  };
}

function toName(index: number): string {
  return `vllm-${String(index).padStart(3, '0')}`;
}
