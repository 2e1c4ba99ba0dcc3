import { expect, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { Lease } from '../../../src/replicas/data/lease.ts';

/** A replica with two GPUs, at a time that the test passes. */
function createReplica(gpuCount: number | null = 2) {
  const clock = { nowMs: 1_000_000 };
  const pools = createPools([toReplicaConfig('a', ['m'], { gpuCount })], 1, { nowMs: () => clock.nowMs });
  const lease = () => {
    const acquired = pools.pool.acquire('m', new Set());
    if (!(acquired instanceof Lease)) throw new Error(String(acquired));
    return acquired;
  };
  const slot = pools.registry.find('a')?.slot ?? -1;
  const times = () => pools.shared.gpuTimes.timeOf(slot);
  const configure = (later: number | null) => {
    pools.registry.configure([toReplicaConfig('a', ['m'], { gpuCount: later })], '2026-01-01T00:00:00.000Z');
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
  expect(createReplica(null).lease().gpuShare).toBeNull();
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
  expect(times()).toMatchObject({ unrecordedMs: 2_000 });
  unclaimed.disclaim();
  expect(times()).toMatchObject({ unrecordedMs: 2_000 });

  const claimed = share();
  claimed.claim();
  clock.nowMs += 1_000;
  claimed.end();
  clock.nowMs += 1_000;
  claimed.end();
  expect(claimed.seconds).toBe(2);
  expect(times()).toMatchObject({ unrecordedMs: 2_000 });
  claimed.disclaim();
  claimed.disclaim();
  expect(times()).toMatchObject({ unrecordedMs: 4_000 });

  const early = share();
  early.claim();
  clock.nowMs += 1_000;
  early.disclaim();
  expect(times()).toMatchObject({ unrecordedMs: 4_000 });
  early.end();
  expect(times()).toMatchObject({ unrecordedMs: 6_000 });
});

test('time costs nothing once a lease has ended on a replica that has no GPUs any more', () => {
  const { clock, lease, configure } = createReplica();
  const [first, second] = [lease(), lease()];
  configure(null);
  first[Symbol.dispose]();
  clock.nowMs += 1_000;
  second[Symbol.dispose]();
  expect([first.gpuShare?.seconds, second.gpuShare?.seconds]).toEqual([0, 0]);
});
