import { setTimeout as sleep } from 'node:timers/promises';
import { askAdmin } from '#testkit/programs/gateway-process.ts';
import { type Change, type SoakGateway, TIMEOUTS, toReplica } from './world/gateways.ts';
import { REPLICA_NAMES } from './world/replicas.ts';
import type { World } from './world/start-world.ts';

/** How long the collector is away, a replica that crashed, or a replica that was taken out of the configuration. */
const AWAY_MS = 2_000;
/** How long Redis is: more than it takes until a gateway misses it. */
const REDIS_AWAY_MS = 6_000;
/** So long after Redis is back, the gateways have found it again. */
const REDIS_SETTLES_MS = 10_000;
/** How long a former key is valid beside its successor: requests with it are under way. */
const KEYS_OVERLAP_MS = 3_000;
/** Workers that die one after another are replaced after up to 10 s. */
const WORKER_MS = 30_000;

const ALIAS = 'another-m';

/** Something that happens while requests run. It is over when its promise resolves. Rejects if it went wrong. */
export interface SoakFault {
  readonly name: string;
  /** `round`: how often all faults have run before. */
  run(world: World, round: number): Promise<void>;
}

/** The faults, in round. */
export const SOAK_FAULTS: readonly SoakFault[] = [
  { name: 'a replica is drained, restarted and undrained', run: restartReplica },
  { name: 'the collector is away', run: loseCollector },
  { name: 'a replica leaves the configuration and comes back', run: removeReplica },
  { name: 'Redis is killed and comes back empty', run: loseRedis },
  { name: 'the keys of clients change', run: rotateKeys },
  { name: 'a replica crashes', run: crashReplica },
  { name: 'limits, routing, time-outs and the log level change', run: changeSettings },
  { name: 'a worker is killed', run: killWorker },
  { name: 'a replica is drained and undrained', run: drainReplica },
  { name: 'a gateway cannot reach Redis', run: cutLink },
];

const nameOf = (round: number) => REPLICA_NAMES[round % REPLICA_NAMES.length] ?? REPLICA_NAMES[0];
const gatewayOf = ({ gateways }: World, round: number): SoakGateway => gateways[round % 2] ?? gateways[0];

/** Drains a replica at a gateway, does something if it is safe to stop, and undrains it. */
async function whileDrained(
  world: World,
  round: number,
  whenSafe: (name: string) => Promise<void>,
): Promise<void> {
  const name = nameOf(round);
  const { adminUrl } = gatewayOf(world, round).process;
  const ended = world.journal.begin('absent', name);
  const answer = await askAdmin(adminUrl, 'POST', `/admin/replicas/${name}/drain?wait=20s`);
  const { replica } = answer as { replica: { safe_to_stop: boolean | null } };
  if (replica.safe_to_stop === true) await whenSafe(name);
  await askAdmin(adminUrl, 'POST', `/admin/replicas/${name}/undrain`);
  ended();
}

function restartReplica(world: World, round: number): Promise<void> {
  return whileDrained(world, round, async (name) => {
    await world.replicas.stop(name);
    await world.replicas.start(name);
  });
}

function drainReplica(world: World, round: number): Promise<void> {
  return whileDrained(world, round, () => Promise.resolve());
}

async function crashReplica({ replicas }: World, round: number): Promise<void> {
  await replicas.crash(nameOf(round));
  await sleep(AWAY_MS);
  await replicas.start(nameOf(round));
}

async function loseCollector({ collector }: World): Promise<void> {
  await collector.close();
  await sleep(AWAY_MS);
  await collector.reopen();
}

async function loseRedis({ redis, journal }: World): Promise<void> {
  const ended = journal.begin('redis');
  await redis.kill();
  await sleep(REDIS_AWAY_MS);
  await redis.start();
  await sleep(REDIS_SETTLES_MS);
  ended();
}

async function cutLink({ links, journal }: World, round: number): Promise<void> {
  const ended = journal.begin('redis');
  // A link that is silent breaks before it is whole again: what was sent into it is gone.
  links[round % 2]?.become(Math.floor(round / 2) % 2 === 0 ? 'silent' : 'cut');
  await sleep(REDIS_AWAY_MS);
  links[round % 2]?.become('cut');
  links[round % 2]?.become('whole');
  await sleep(REDIS_SETTLES_MS);
  ended();
}

/** Reloads a configuration, and makes sure that exactly these keys have changed. */
async function reload(gateway: SoakGateway, change: Change, keys: readonly string[]): Promise<void> {
  const { changed, needs_restart } = await gateway.reload(change);
  if (changed.toSorted().join() !== keys.toSorted().join() || needs_restart.length > 0) {
    throw new Error(`a reload changed ${changed.join()} instead of ${keys.join()}`);
  }
}

/** What a gateway keeps over reloads. */
function clientsOf(world: World, gateway: SoakGateway): Change {
  return gateway === world.gateways[0] ? { clients: world.keys.toClients() } : {};
}

async function removeReplica(world: World, round: number): Promise<void> {
  const gateway = gatewayOf(world, round);
  const left = nameOf(round);
  const ended = world.journal.begin('absent', left);
  const replicas = world.replicas.list
    .filter(({ name }) => name !== left)
    .map((replica) => toReplica(replica));
  const clients = clientsOf(world, gateway);
  await reload(gateway, { ...clients, replicas }, ['replicas']);
  await sleep(AWAY_MS);
  await reload(gateway, clients, ['replicas']);
  ended();
}

async function changeSettings(world: World, round: number): Promise<void> {
  const policies = ['least_inflight', 'prefix_affinity'];
  for (const gateway of world.gateways) {
    const clients = clientsOf(world, gateway);
    const change = {
      ...clients,
      limits: { body: '8MiB', event: '256KiB', queue: 100 },
      routing: { policy: policies[round % policies.length] },
      replicas: world.replicas.list.map((replica) => toReplica(replica, { max_inflight: 150 })),
      timeouts: { ...TIMEOUTS, idle: '2m', client_body: '2m' },
      log: { level: 'debug', requests: round % 2 === 0 },
      aliases: { [ALIAS]: 'm' },
    };
    const keys = [
      ...['limits.body', 'limits.event', 'limits.queue', 'routing.policy', 'replicas'],
      ...[`aliases.${ALIAS}`, 'timeouts.idle', 'timeouts.client_body', 'log.level'],
      ...(round % 2 === 0 ? ['log.requests'] : []),
    ];
    await reload(gateway, change, keys);
    await askForAlias(world, gateway);
    await sleep(AWAY_MS);
    await reload(gateway, clients, keys);
  }
}

/** That a configuration is in force shows in what requests get. */
async function askForAlias({ keys }: World, gateway: SoakGateway): Promise<void> {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${keys.keyFor('valid')}` };
  const body = JSON.stringify({ model: ALIAS, input: ['a', 'b'] });
  const response = await fetch(`${gateway.process.url}/v1/embeddings`, { method: 'POST', headers, body });
  await response.body?.cancel();
  if (response.status !== 200) throw new Error(`a new alias is answered with ${response.status}`);
}

/** As operators do it: the new key beside the former one, then the clients, then without the former one. */
async function rotateKeys(world: World): Promise<void> {
  const { gateways, keys } = world;
  const next = keys.create();
  await reload(gateways[0], { clients: keys.toClients(next.entry) }, ['clients']);
  const former = keys.use(next);
  await sleep(KEYS_OVERLAP_MS);
  await reload(gateways[0], { clients: keys.toClients() }, ['clients']);
  const headers = { Authorization: `Bearer ${former.key}` };
  const response = await fetch(`${gateways[0].process.url}/v1/models`, { headers });
  await response.body?.cancel();
  if (response.status !== 401)
    throw new Error(`a key that was taken away is answered with ${response.status}`);
}

async function killWorker({ gateways: [gateway], journal }: World): Promise<void> {
  const before = gateway.killedWorkers;
  const ended = journal.begin('worker');
  process.kill(gateway.process.pid, 'SIGUSR2');
  const deadlineMs = performance.now() + WORKER_MS;
  while (gateway.killedWorkers === before) {
    if (performance.now() > deadlineMs) throw new Error('the worker does not end');
    await sleep(50);
  }
  ended();
}
