import { expect, onTestFinished, test, vi } from 'vitest';
import { createPools, type PoolOptions, toReplicaConfig } from '#testkit/pool.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';
const RAMP_MS = 60_000;

function leaseOf(acquired: unknown): Lease {
  if (!(acquired instanceof Lease)) throw new Error(String(acquired));
  return acquired;
}

/** The replica that a request gets, which ends at once. */
function pick(pool: ReplicaPool, prefixKey: number | null = null): string {
  using lease = leaseOf(pool.acquire('m', NONE, prefixKey));
  return lease.replica.name;
}

/** Replicas of one model, with a clock for their ramps that stands still until it is moved. */
function createNamed(names: string, options: PoolOptions & { readonly maxInflight?: number } = {}) {
  const { maxInflight = null, ...rest } = options;
  const clock = { nowMs: 1_000_000 };
  const pools = createPools(
    [...names].map((name) => toReplicaConfig(name, ['m'], { maxInflight })),
    1,
    { nowMs: () => clock.nowMs, ...rest },
  );
  const { registry, shared, pool, drains } = pools;
  shared.health.configure({
    passive: true,
    active: true,
    failures: 1,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: null,
  });
  const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
  const replicas = new Map<string, Replica>();
  while (replicas.size < names.length) {
    using lease = leaseOf(pool.acquireAny(NONE));
    replicas.set(lease.replica.name, lease.replica);
  }
  const replicaOf = (name: string) => replicas.get(name) as Replica;
  const undrain = (name: string, rampMs = RAMP_MS) => {
    drains.set(name, true, { reason: null, at: AT });
    drains.set(name, false, { reason: null, at: AT, rampMs });
  };
  return { ...pools, clock, slotOf, replicaOf, undrain };
}

test('a request that finds out whether a replica still fails is in flight on it', () => {
  const { pool, replicaOf } = createNamed('ab');
  const b = replicaOf('b');
  b.noteLoading();
  const lease = leaseOf(pool.acquire('m', NONE));
  expect([lease.replica.name, b.inflight]).toEqual(['b', 1]);
  lease[Symbol.dispose]();
  expect(b.inflight).toBe(0);
});

test('of replicas that fail, the first one is tried again first', () => {
  const { pool, replicaOf } = createNamed('abc');
  for (const name of ['b', 'a']) replicaOf(name).noteLoading();
  expect([1, 2].map(() => pick(pool))).toEqual(['a', 'a']);
});

test('one replica that got room is not leased before the requests that wait for it', async () => {
  const { pool, replicaOf } = createNamed('a', { maxInflight: 1 });
  const a = replicaOf('a');
  const held = leaseOf(pool.acquire('m', NONE));
  const wait = pool.waitForOne(a, 'm', 60_000);
  if (wait === 'overloaded') throw new Error(wait);
  held[Symbol.dispose]();
  expect(pool.acquireOne(a, 'm', NONE)).toBe('busy');
  expect(leaseOf(await wait.result).replica).toBe(a);
});

test('a unit of a limit that another thread takes during the choice is not taken again', () => {
  const { pool, shared, slotOf, replicaOf } = createNamed('ab', { maxInflight: 1 });
  const a = replicaOf('a');
  const move = shared.moveCursor.bind(shared);
  const moveCursor = vi.spyOn(shared, 'moveCursor').mockImplementationOnce((...cursor) => {
    shared.beginInflight(0, slotOf('a'), 1);
    return move(...cursor);
  });
  onTestFinished(() => moveCursor.mockRestore());
  expect(leaseOf(pool.acquire('m', NONE)).replica.name).toBe('b');
  expect(a.inflight).toBe(1);
});

test('with least_inflight a request goes where the fewest are in flight, whosever turn it is', () => {
  const { pool, slotOf, shared } = createNamed('abc', { policy: 'least_inflight' });
  for (const [name, count] of [
    ['a', 2],
    ['b', 1],
    ['c', 3],
  ] as const) {
    for (let begun = 0; begun < count; begun++) shared.beginInflight(0, slotOf(name), null);
  }
  expect([1, 2].map(() => pick(pool))).toEqual(['b', 'b']);
});

/** How many of so many requests go to a replica. */
const countOf = (pool: ReplicaPool, name: string, requests: number) =>
  Array.from({ length: requests }, () => pick(pool)).filter((each) => each === name).length;

test('a replica at its first share gets one of 21 turns beside another one', () => {
  const { pool, undrain } = createNamed('ab');
  undrain('b');
  expect(countOf(pool, 'b', 430)).toBe(20);
});

test('a replica that fails on its ramp takes nothing from the share of another one', () => {
  const { pool, shared, slotOf, undrain } = createNamed('abc');
  for (const name of ['b', 'c']) undrain(name);
  shared.health.markFailing(slotOf('c'), 'probes');
  expect(countOf(pool, 'b', 430)).toBe(20);
});

test('a replica whose ramp has ended takes as many requests as it can, while another one is on its ramp', () => {
  const { pool, clock, shared, slotOf, undrain } = createNamed('abc', { policy: 'least_inflight' });
  undrain('b', RAMP_MS / 2);
  undrain('c', RAMP_MS * 1_000);
  pick(pool);
  clock.nowMs += RAMP_MS / 2;
  for (let begun = 0; begun < 20; begun++) shared.beginInflight(0, slotOf('a'), null);
  const names = Array.from({ length: 10 }, () => leaseOf(pool.acquire('m', NONE)).replica.name);
  expect(names).toEqual(Array(10).fill('b'));
});

test('requests with a prefix use up no turns of those without one', () => {
  const { pool, clock, replicaOf, undrain } = createNamed('ab', { policy: 'prefix_affinity' });
  undrain('b');
  clock.nowMs += RAMP_MS / 2;
  const keys = Array.from({ length: 64 }, (_, index) => Math.imul(index + 1, 0x85ebca6b) >>> 0);
  const ofB = keys.filter((key) => pick(pool, key) === 'b');
  expect(ofB.length).toBeGreaterThan(4);
  // Prefixes stay where they are, whatever the turns.
  expect(keys.filter((key) => pick(pool, key) === 'b')).toEqual(ofB);
  for (const key of ofB) pick(pool, key);
  const onA = leaseOf(pool.acquireOne(replicaOf('a'), 'm', NONE));
  expect([1, 2].map(() => pick(pool))).toContain('b');
  onA[Symbol.dispose]();
});
