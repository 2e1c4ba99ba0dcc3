import { expect, test } from 'vitest';
import { createPools, type PoolOptions, toReplicaConfig } from '#testkit/pool.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';

function leaseOf(acquired: unknown): Lease {
  if (!(acquired instanceof Lease)) throw new Error(String(acquired));
  return acquired;
}

/** Replicas `a`, `b`, … of one model, and the route of a request. */
function create(names: string, options: PoolOptions & { readonly maxInflight?: number } = {}) {
  const { maxInflight = null, ...rest } = options;
  const clock = { nowMs: 1_000_000 };
  const pools = createPools(
    [...names].map((name) => toReplicaConfig(name, ['m'], { maxInflight })),
    1,
    { nowMs: () => clock.nowMs, ...rest },
  );
  const { pool, shared, drains } = pools;
  shared.health.configure({
    passive: true,
    active: true,
    failures: 1,
    coolDownMs: 60_000,
    frozenAfterMs: null,
    peers: null,
  });
  const replicas = new Map<string, Replica>();
  while (replicas.size < names.length) {
    using lease = leaseOf(pool.acquireAny(NONE));
    replicas.set(lease.replica.name, lease.replica);
  }
  const replicaOf = (name: string) => replicas.get(name) as Replica;
  const drain = (name: string, isDrained = true, rampMs?: number) =>
    drains.set(name, isDrained, { reason: null, at: AT, ...(rampMs === undefined ? {} : { rampMs }) });
  const routeOf = (tried: readonly string[] = [], prefixKey: number | null = null) => {
    using lease = leaseOf(pool.acquire('m', new Set(tried.map(replicaOf)), prefixKey));
    return lease.route;
  };
  return { ...pools, replicaOf, drain, routeOf, clock };
}

test('a route says the policy, and the number of candidates', () => {
  expect(create('abc').routeOf()).toEqual({ reason: 'turn', candidates: 3, ruledOut: null });
  expect(create('abc', { policy: 'least_inflight' }).routeOf().reason).toBe('least_in_flight');
  const byPrefix = create('abc', { policy: 'prefix_affinity' });
  expect([byPrefix.routeOf([], 7).reason, byPrefix.routeOf().reason]).toEqual(['prefix', 'least_in_flight']);
});

test('requests that only drains and failures concern share one route', () => {
  const { routeOf, drain } = create('abc');
  const first = routeOf();
  expect(routeOf()).toBe(first);
  drain('b');
  expect(routeOf()).toEqual({ reason: 'turn', candidates: 2, ruledOut: { drained: 1 } });
  expect(routeOf()).toBe(routeOf());
});

test('each replica that was ruled out counts once, by what ruled it out', () => {
  const { routeOf, drain, replicaOf, pool } = create('abcdef', { maxInflight: 1 });
  drain('a');
  replicaOf('b').noteNotConnected(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  replicaOf('c').noteLoading();
  drain('c', true);
  drain('c', false);
  replicaOf('c').noteLoading();
  using _held = leaseOf(pool.acquireOne(replicaOf('d'), 'm', NONE));
  const { reason, candidates, ruledOut } = routeOf(['e']);
  expect([reason, candidates]).toEqual(['next_after_failure', 1]);
  expect(ruledOut).toEqual({ drained: 1, unreachable: 1, failing: 1, at_limit: 1, tried: 1 });
});

test('the only one left is the only candidate, and the last that fail are tried when none is healthy', () => {
  const { routeOf, drain, replicaOf } = create('ab');
  drain('a');
  expect(routeOf()).toEqual({ reason: 'only_candidate', candidates: 1, ruledOut: { drained: 1 } });
  replicaOf('b').noteNotConnected(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
  expect(routeOf()).toEqual({ reason: 'none_healthy', candidates: 1, ruledOut: { drained: 1 } });
});

test('a request that finds out whether a replica still fails says so', () => {
  const { routeOf, replicaOf, shared } = create('ab');
  shared.health.configure({
    passive: true,
    active: true,
    failures: 1,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: null,
  });
  replicaOf('b').noteLoading();
  expect(routeOf()).toEqual({ reason: 'retry_of_failing', candidates: 2, ruledOut: null });
});

test('a replica on its ramp is ruled out until it has a turn', () => {
  const { routeOf, drain, clock } = create('ab');
  drain('a');
  drain('a', false, 60_000);
  expect(routeOf()).toEqual({ reason: 'only_candidate', candidates: 1, ruledOut: { ramping: 1 } });
  clock.nowMs += 30_000;
  const routes = Array.from({ length: 8 }, () => routeOf());
  expect(routes.map(({ reason }) => reason)).toEqual(expect.arrayContaining(['ramp', 'only_candidate']));
});

test('a prefix goes to its next replica while its owner is too busy', () => {
  const { pool, routeOf } = create('abc', { policy: 'prefix_affinity' });
  const owner = leaseOf(pool.acquire('m', NONE, 7)).replica;
  for (let count = 0; count < 9; count++) leaseOf(pool.acquireOne(owner, 'm', NONE));
  expect(routeOf([], 7).reason).toBe('prefix_next');
});

test('what a response is kept by is its home, also after a wait', async () => {
  const { pool, replicaOf } = create('ab', { maxInflight: 1 });
  const held = leaseOf(pool.acquireOne(replicaOf('b'), 'm', NONE));
  expect(held.route).toEqual({ reason: 'response_home', candidates: 1, ruledOut: null });
  const wait = pool.waitForOne(replicaOf('b'), 'm', 60_000);
  if (wait === 'overloaded') throw new Error(wait);
  held[Symbol.dispose]();
  expect(leaseOf(await wait.result).route).toEqual(held.route);
});

test('a prefix remembers where the last request with it went, as long as it is counted', () => {
  const { pool, replicaOf } = create('ab', { policy: 'prefix_affinity' });
  const match = () => pool.matchPrefix('m', ['0000000a']);
  const first = match();
  expect(first).toEqual({ key: 10, blocks: 1, share: 1, lastSeed: null });
  if (first === null) return;
  pool.notePrefixSent('m', first, replicaOf('b'));
  expect(match()?.lastSeed).toBe(replicaOf('b').seed);
  // All counts are halved now and then: what was seen once is forgotten.
  for (let id = 0; id < 4096; id++) pool.matchPrefix('m', [`${(id + 100).toString(16).padStart(8, '0')}`]);
  expect(match()?.lastSeed).toBeNull();
});
