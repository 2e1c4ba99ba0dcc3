import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import type { PoolSettings, ReplicaPool } from '../../../src/replicas/data/pool.ts';
import { rampShare } from '../../../src/replicas/ramps/ramp.ts';

const AT = '2026-01-01T00:00:00.000Z';
const RAMP_MS = 60_000;

/** Replicas `r0` to `r3` behind the pools of some workers, with a clock that stands still until it is moved. */
function createRamped({
  policy = 'round_robin',
  workers = 1,
  count = 4,
  maxInflight = null,
}: {
  readonly policy?: PoolSettings['policy'];
  readonly workers?: number;
  readonly count?: number;
  readonly maxInflight?: number | null;
} = {}) {
  const clock = { nowMs: 1_000_000 };
  const names = Array.from({ length: count }, (_, index) => `r${index}`);
  const pools = createPools(
    names.map((name) => toReplicaConfig(name, ['m'], { maxInflight })),
    workers,
    { policy, nowMs: () => clock.nowMs },
  );
  const undrain = (name: string, rampMs = RAMP_MS) => {
    pools.drains.set(name, true, { reason: null, at: AT });
    pools.drains.set(name, false, { reason: null, at: AT, rampMs });
  };
  return { ...pools, clock, names, undrain };
}

/** Takes a replica for a request that ends at once. */
function pick(pool: ReplicaPool | undefined, prefixKey: number | null = null): string {
  const lease = pool?.acquire('m', new Set(), prefixKey);
  if (lease === undefined || typeof lease === 'string') throw new Error(lease);
  using held = lease;
  return held.replica.name;
}

describe.each(['round_robin', 'least_inflight'] as const)('with %s', (policy) => {
  test('the turns of a replica follow its ramp, over all workers, whenever the requests come', () => {
    const requests = fc.array(fc.tuple(fc.nat(200), fc.nat(2)), { minLength: 50, maxLength: 2_000 });
    fc.assert(
      fc.property(requests, fc.integer({ min: 2, max: 6 }), (steps, count) => {
        const { pools, clock, undrain } = createRamped({ policy, workers: 3, count });
        undrain('r1');
        const beganMs = clock.nowMs;
        let expected = 0;
        let taken = 0;
        for (const [pauseMs, worker] of steps) {
          clock.nowMs += pauseMs;
          const share = rampShare(clock.nowMs - beganMs, RAMP_MS);
          expected += share / (count - 1 + share);
          if (pick(pools[worker]) === 'r1') taken++;
          expect(Math.abs(taken - expected)).toBeLessThan(3);
        }
      }),
      { numRuns: 30 },
    );
  });

  test('the other replicas share what it does not take evenly', () => {
    const { pool, undrain } = createRamped({ policy });
    undrain('r1');
    const counts = new Map<string, number>();
    for (let request = 0; request < 3_050; request++) {
      const name = pick(pool);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    expect(Math.abs((counts.get('r1') ?? 0) - 50)).toBeLessThan(2);
    for (const name of ['r0', 'r2', 'r3']) expect(Math.abs((counts.get(name) ?? 0) - 1_000)).toBeLessThan(3);
  });
});

test('with least_inflight an empty replica on its ramp does not draw every request', () => {
  const { pool, undrain } = createRamped({ policy: 'least_inflight' });
  undrain('r1');
  const leases = Array.from({ length: 305 }, () => pool.acquire('m', new Set()));
  const names = leases.map((lease) => (typeof lease === 'string' ? lease : lease.replica.name));
  expect(Math.abs(names.filter((name) => name === 'r1').length - 5)).toBeLessThan(2);
});

describe('with prefix_affinity', () => {
  const keys = Array.from({ length: 4_000 }, (_, index) => Math.imul(index + 1, 0x85ebca6b) >>> 0);

  test('a replica takes back its prefixes one after another, and only its own', () => {
    const { pool, clock, undrain } = createRamped({ policy: 'prefix_affinity' });
    const home = keys.map((key) => pick(pool, key));
    undrain('r1');
    let before = 0;
    for (const step of [0, 0.25, 0.5, 0.75, 1]) {
      clock.nowMs = 1_000_000 + step * RAMP_MS;
      const owners = keys.map((key) => pick(pool, key));
      const back = owners.filter((owner) => owner === 'r1').length;
      const share = back / home.filter((owner) => owner === 'r1').length;
      expect(Math.abs(share - rampShare(step * RAMP_MS, RAMP_MS))).toBeLessThan(0.05);
      expect(back).toBeGreaterThanOrEqual(before);
      expect(owners.every((owner, at) => owner === home[at] || home[at] === 'r1')).toBe(true);
      before = back;
    }
  });
});

test('the only replica of its model gets everything', () => {
  const { pool, undrain } = createRamped({ count: 1 });
  undrain('r0');
  expect(Array.from({ length: 20 }, () => pick(pool)).every((name) => name === 'r0')).toBe(true);
});

test('replicas that all begin a ramp share the requests evenly', () => {
  const { pool, names, undrain } = createRamped();
  for (const name of names) undrain(name);
  const taken = Array.from({ length: 400 }, () => pick(pool));
  for (const name of names) {
    expect(Math.abs(taken.filter((each) => each === name).length - 100)).toBeLessThan(5);
  }
});

test('no request waits or fails for a ramp: what the others cannot take goes to the replica on it', () => {
  const { pool, undrain } = createRamped({ count: 2, maxInflight: 3 });
  undrain('r1');
  const leases = Array.from({ length: 7 }, () => pool.acquire('m', new Set()));
  const names = leases.map((lease) => (typeof lease === 'string' ? lease : lease.replica.name));
  expect(names).toEqual(['r0', 'r0', 'r0', 'r1', 'r1', 'r1', 'busy']);
});

describe('a ramp', () => {
  test('ends with a drain, and the next undrain has its own', () => {
    const { registry, drains, clock, undrain } = createRamped();
    undrain('r1');
    clock.nowMs += 30_000;
    expect(registry.find('r1')?.ramp).toMatchObject({ elapsedMs: 30_000, share: 0.525 });
    drains.set('r1', true, { reason: null, at: AT });
    expect(registry.find('r1')?.ramp).toBeNull();
    drains.set('r1', false, { reason: null, at: AT });
    expect(registry.find('r1')?.ramp).toBeNull();
    undrain('r1', 10_000);
    expect(registry.find('r1')?.ramp).toMatchObject({ elapsedMs: 0, durationMs: 10_000 });
  });

  test('goes on when the undrain is repeated, and ends with an undrain without one', () => {
    const { registry, drains, clock, undrain } = createRamped();
    undrain('r1');
    clock.nowMs += 30_000;
    drains.set('r1', false, { reason: null, at: AT, rampMs: RAMP_MS });
    expect(registry.find('r1')?.ramp).toMatchObject({ elapsedMs: 30_000 });
    drains.set('r1', false, { reason: null, at: AT });
    expect(registry.find('r1')?.ramp).toBeNull();
  });

  test('is not begun by the undrain of a replica that serves', () => {
    const { registry, drains } = createRamped();
    drains.set('r1', false, { reason: null, at: AT, rampMs: RAMP_MS });
    expect(registry.find('r1')?.ramp).toBeNull();
  });

  test('goes on when the replica moves to another address', () => {
    const { registry, clock, undrain, names } = createRamped();
    undrain('r1');
    clock.nowMs += 30_000;
    const moved = names.map((name) => toReplicaConfig(name, ['m'], { url: `http://${name}.other.test` }));
    registry.configure(moved, AT);
    expect(registry.find('r1')?.ramp).toMatchObject({ elapsedMs: 30_000, share: 0.525 });
  });
});
