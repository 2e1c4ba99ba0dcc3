import { expect, test } from 'vitest';
import { Lease } from '#replicas';
import type { ReplicaConfig } from '#replicas/terms';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';

type Gpus = Partial<Pick<ReplicaConfig, 'gpuCount' | 'gpuHourPrice'>>;

/** A replica with two GPUs, at a time that the test passes. */
function createReplica(gpus: Gpus = {}) {
  const clock = { nowMs: 1_000_000 };
  const toConfig = (now: Gpus) => toReplicaConfig('a', ['m'], { gpuCount: 2, ...now });
  const pools = createPools([toConfig(gpus)], 1, { nowMs: () => clock.nowMs });
  const lease = () => {
    const acquired = pools.pool.acquire('m', new Set());
    if (!(acquired instanceof Lease)) throw new Error(String(acquired));
    return acquired;
  };
  const slot = pools.registry.find('a')?.slot ?? -1;
  const times = () => pools.shared.gpuTimes.timeOf(slot);
  const configure = (later: Gpus) => {
    pools.registry.configure([toConfig(later)], '2026-01-01T00:00:00.000Z');
    pools.publish();
  };
  return { clock, lease, times, configure };
}

test('a lease takes the time of all GPUs while it is alone, and a part of it while it is not', () => {
  const { clock, lease } = createReplica();
  const first = lease();
  clock.nowMs += 1_000;
  const second = lease();
  clock.nowMs += 1_000;
  expect(first.gpuShare?.seconds).toBe(0);
  first[Symbol.dispose]();
  clock.nowMs += 1_000;
  second[Symbol.dispose]();
  expect([first.gpuShare?.seconds, second.gpuShare?.seconds]).toEqual([3, 3]);
});

test('a lease on a replica without GPUs has no share', () => {
  expect(createReplica({ gpuCount: null }).lease().gpuShare).toBeNull();
});

test('a share ends once, and counts for no record unless one claims it', () => {
  const { clock, lease, times } = createReplica();
  const share = () => {
    const { gpuShare } = lease();
    if (gpuShare === null) throw new Error('no share');
    return gpuShare;
  };
  const unclaimed = share();
  clock.nowMs += 1_000;
  unclaimed.end();
  expect(times()).toMatchObject({ ms: { unrecorded: 2_000 } });
  unclaimed.disclaim();
  expect(times()).toMatchObject({ ms: { unrecorded: 2_000 } });

  const claimed = share();
  claimed.claim();
  clock.nowMs += 1_000;
  claimed.end();
  clock.nowMs += 1_000;
  claimed.end();
  expect(claimed.seconds).toBe(2);
  expect(times()).toMatchObject({ ms: { unrecorded: 2_000 } });
  claimed.disclaim();
  claimed.disclaim();
  expect(times()).toMatchObject({ ms: { unrecorded: 4_000 } });

  const early = share();
  early.claim();
  clock.nowMs += 1_000;
  early.disclaim();
  expect(times()).toMatchObject({ ms: { unrecorded: 4_000 } });
  early.end();
  expect(times()).toMatchObject({ ms: { unrecorded: 6_000 } });
});

test('time costs nothing once a lease has ended on a replica that has no GPUs any more', () => {
  const { clock, lease, configure } = createReplica();
  const [first, second] = [lease(), lease()];
  configure({ gpuCount: null });
  first[Symbol.dispose]();
  clock.nowMs += 1_000;
  second[Symbol.dispose]();
  expect([first.gpuShare?.seconds, second.gpuShare?.seconds]).toEqual([0, 0]);
});

test('a share costs its part at the price of each moment, and a price that changes changes no other moment', () => {
  const { clock, lease, times, configure } = createReplica({ gpuHourPrice: 3_600 });
  const first = lease();
  clock.nowMs += 1_000;
  const second = lease();
  clock.nowMs += 1_000;
  configure({ gpuHourPrice: 7_200 });
  clock.nowMs += 1_000;
  first[Symbol.dispose]();
  second[Symbol.dispose]();
  clock.nowMs += 1_000;
  // Two GPUs: at 1 per second alone, at 1 and then at 2 for two of them.
  expect([first.gpuShare?.cost, second.gpuShare?.cost]).toEqual([2 + 1 + 2, 1 + 2]);
  expect(times().cost).toEqual({ busy: 8, unrecorded: 8, idle: 4, hourPrice: 7_200 });
});

test('a share without a price has no cost, and one that got or lost its price has that of the time with one', () => {
  const { clock, lease, times, configure } = createReplica();
  const ended = () => {
    const { gpuShare } = lease();
    return (change: number | null) => {
      clock.nowMs += 1_000;
      configure({ gpuHourPrice: change });
      clock.nowMs += 1_000;
      gpuShare?.end();
      return gpuShare?.cost;
    };
  };
  expect(times().cost).toBeNull();
  expect(ended()(null)).toBeNull();
  expect(ended()(3_600)).toBe(2);
  expect(ended()(null)).toBe(2);
  expect(ended()(0)).toBe(0);
});
