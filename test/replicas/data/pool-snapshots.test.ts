import { expect, onTestFinished, test, vi } from 'vitest';
import { allocateStoredResponses, StoredResponses } from '#replicas/stored-responses';
import { createPools, QUEUE_CAPACITY, toReplicaConfig } from '#testkit/pool.ts';
import { startTcpServer } from '#testkit/servers/tcp-server.ts';
import { DeadlineClock } from '#wire';
import { SharedReads } from '#wire/upstream';
import { Lease } from '../../../src/replicas/data/lease.ts';
import { type PoolSettings, ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';
import { open } from '../../wire/upstream/collect-response.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';
const HEALTH = {
  passive: true,
  active: false,
  failures: 1,
  coolDownMs: 3_600_000,
  frozenAfterMs: null,
  peers: null,
};
const SETTINGS: PoolSettings = {
  policy: 'round_robin',
  queueCapacity: QUEUE_CAPACITY,
  health: HEALTH,
  timeouts: { connectMs: 1_000, upstreamKeepAliveMs: 4_000, nameTtlMs: 10_000 },
};

/** A pool that no snapshot was applied to yet. */
function createEmpty(configs: Parameters<typeof createPools>[0] = [], settings = SETTINGS) {
  const { shared, registry, pool: other } = createPools(configs);
  other.close();
  const pool = new ReplicaPool(settings, {
    shared,
    worker: 0,
    clock: new DeadlineClock(500),
    sharedReads: new SharedReads(),
    storedResponses: new StoredResponses(allocateStoredResponses()),
    onHealth: () => undefined,
    onDefect: () => undefined,
  });
  onTestFinished(() => pool.close());
  return { shared, registry, pool };
}

function leaseOf(acquired: unknown): Lease {
  if (!(acquired instanceof Lease)) throw new Error(String(acquired));
  return acquired;
}

/** The replicas of a pool by name, in the order of the names. */
function replicasOf(pool: ReplicaPool, names: string): readonly Replica[] {
  const found = new Map<string, Replica>();
  while (found.size < names.length) {
    using lease = leaseOf(pool.acquireAny(NONE));
    found.set(lease.replica.name, lease.replica);
  }
  return [...names].map((name) => found.get(name) as Replica);
}

test('a pool without a snapshot has no replicas, and knows no model', () => {
  const { pool } = createEmpty();
  expect([pool.acquire('m', NONE), pool.acquireAny(NONE)]).toEqual(['model_not_found', 'model_not_found']);
  expect([pool.models, pool.onlyModel, pool.servesModel('m'), pool.mayFoldCase('m')]).toEqual([
    [],
    null,
    false,
    false,
  ]);
});

test('the settings that a pool begins with hold for the health of its replicas', () => {
  const { pool, registry } = createEmpty([toReplicaConfig('a'), toReplicaConfig('b')]);
  pool.apply(registry.nextSnapshot());
  const [a] = replicasOf(pool, 'ab');
  a?.noteLoading();
  expect(a?.isFailing).toBe(true);
});

test('a pool samples silences from its beginning until it closes, more often if replicas may be frozen sooner', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setImmediate'] });
  onTestFinished(() => void vi.useRealTimers());
  const { pool, shared } = createEmpty([], SETTINGS);
  const samples = vi.spyOn(shared.silences, 'noteSampled');
  await vi.advanceTimersByTimeAsync(999);
  expect(samples).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2);
  expect(samples).toHaveBeenCalledTimes(1);
  pool.configure({ ...SETTINGS, health: { ...HEALTH, frozenAfterMs: 400 } });
  await vi.advanceTimersByTimeAsync(101);
  expect(samples).toHaveBeenCalledTimes(2);
  pool.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(samples).toHaveBeenCalledTimes(2);
});

test('a snapshot keeps the idle connections of replicas that stay, and closes those of replicas that go', async () => {
  await using server = await startTcpServer();
  const { pool, registry, publish } = createPools([toReplicaConfig('a', ['m'], { url: server.url })]);
  onTestFinished(() => pool.close());
  const [a] = replicasOf(pool, 'a') as [Replica];
  const connection = await open(a.upstream);
  a.upstream.returnUnused(connection);
  publish();
  expect([connection.isClosed, a.upstream.takeIdle()]).toEqual([false, connection]);
  a.upstream.returnUnused(connection);
  registry.configure([toReplicaConfig('b')], AT);
  publish();
  expect(connection.isClosed).toBe(true);
});

test('a model of which no replica ever answered is not found, where others say what they serve', () => {
  const auto = ['u', 'v'].map((name) => toReplicaConfig(name, 'auto'));
  const some = createPools([...auto, toReplicaConfig('k', ['other'])]).pool;
  const [u, v] = replicasOf(some, 'uvk') as [Replica, Replica];
  const tried = new Set([u, v]);
  expect(some.acquire('m', tried)).toBe('model_not_found');
  // One that has answered before may serve it.
  u.noteAnswered(200, true);
  expect(some.acquire('m', tried)).toBe('no_replica_reachable');
  // Without any list nothing is known of the model.
  const none = createPools(auto).pool;
  expect(none.acquire('m', new Set(replicasOf(none, 'uv')))).toBe('no_replica_reachable');
});

test('a model whose replicas are all gone has none, and waits for none', () => {
  const { pool, registry, publish } = createPools([toReplicaConfig('a', ['m', 'n'])]);
  expect(leaseOf(pool.acquire('n', NONE)).replica.name).toBe('a');
  registry.configure([toReplicaConfig('a', ['m'])], AT);
  publish();
  expect([pool.acquire('n', NONE), pool.servesModel('n'), pool.models]).toEqual([
    'model_not_found',
    false,
    ['m'],
  ]);
});

test('which prefixes are popular is remembered when other replicas serve the model', () => {
  const { pool, registry, publish } = createPools([toReplicaConfig('a')], 1, { policy: 'prefix_affinity' });
  const hashes = ['0000000a', '0000000b'];
  const keys = Array.from({ length: 9 }, () => pool.matchPrefix('m', hashes)?.key);
  expect(keys).toEqual([...Array(8).fill(10), 11]);
  registry.configure([toReplicaConfig('a'), toReplicaConfig('b')], AT);
  publish();
  expect(pool.matchPrefix('m', hashes)?.key).toBe(11);
});

test('a stored response has no home where two names have the same seed', () => {
  // The SHA-256 of both begins with the same 32 bits.
  const names = ['r50007', 'r102831'];
  const { pool } = createPools(names.map((name) => toReplicaConfig(name)));
  const { replica } = leaseOf(pool.acquire('m', NONE));
  pool.noteResponse('r1', replica, { model: 'm', calledAs: 'm', tenant: 't' });
  expect(pool.findResponse('r1', null)?.home).toBeNull();
});
