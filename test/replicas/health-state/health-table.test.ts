import { describe, expect, test, vi } from 'vitest';
import { Lease, type ReplicaPool } from '#replicas';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import type { HealthSettings } from '../../../src/replicas/health-state/health-table.ts';
import { allocateSharedState, SharedState } from '../../../src/replicas/shared/shared-state.ts';

const PASSIVE: HealthSettings = {
  passive: true,
  active: false,
  failures: 3,
  coolDownMs: 10_000,
  frozenAfterMs: null,
  peers: null,
};
const SLOT = 7;

/** The table as `count` threads see it. */
function createTables(count: number, settings = PASSIVE, nowMs?: () => number) {
  const memory = allocateSharedState(1);
  const tables = Array.from({ length: count }, () => new SharedState(memory, nowMs).health);
  for (const table of tables) table.configure(settings);
  return tables as [SharedState['health'], SharedState['health']];
}

describe('a replica whose connections are refused', () => {
  test('fails from the third consecutive refusal on, in any threads; one of them is told', () => {
    const [one, other] = createTables(2);
    expect([one.noteRefused(SLOT), other.noteRefused(SLOT), one.noteRefused(SLOT)]).toEqual([
      false,
      false,
      true,
    ]);
    expect(other.noteRefused(SLOT)).toBe(false);
    expect([one.isFailing(SLOT), other.isFailing(SLOT), one.isFailing(SLOT + 1)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(other.healthOf(SLOT)).toMatchObject({ state: 'failing', since: expect.stringMatching(/^20.*Z$/) });
  });

  test('is ok with the next answer; one thread is told', () => {
    const [one, other] = createTables(2);
    for (let count = 0; count < 3; count++) one.noteRefused(SLOT);
    expect([other.noteAnswered(SLOT), one.noteAnswered(SLOT)]).toEqual([true, false]);
    expect(one.healthOf(SLOT)).toMatchObject({ state: 'ok', since: expect.any(String) });
  });

  test('does not fail while answers come in between', () => {
    const [table] = createTables(1);
    for (let count = 0; count < 9; count++) {
      expect(table.noteRefused(SLOT)).toBe(false);
      if (count % 2 === 1) table.noteAnswered(SLOT);
    }
    expect(table.healthOf(SLOT)).toMatchObject({ state: 'ok', since: null });
  });

  test('is tried by one request of all threads in each cool-down', () => {
    let nowMs = 1000;
    const [one, other] = createTables(2, PASSIVE, () => nowMs);
    for (let count = 0; count < 3; count++) one.noteRefused(SLOT);
    expect([one.claimRetry(SLOT, 0), other.claimRetry(SLOT, 0)]).toEqual([false, false]);
    nowMs += 10_000;
    expect([one.claimRetry(SLOT, 0), other.claimRetry(SLOT, 0)]).toEqual([true, false]);
    nowMs += 9999;
    expect(one.claimRetry(SLOT, 0)).toBe(false);
    nowMs += 1;
    expect(other.claimRetry(SLOT, 0)).toBe(true);
  });

  test('is tried after the cool-down even if the time of day is set back meanwhile', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      let nowMs = 1000;
      const [table] = createTables(1, PASSIVE, () => nowMs);
      for (let count = 0; count < 3; count++) table.noteRefused(SLOT);
      vi.setSystemTime(Date.now() - 3_600_000);
      nowMs += 10_000;
      expect(table.claimRetry(SLOT, 0)).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  test('has failed for as long as it has, whatever the time of day was set to meanwhile', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      let nowMs = 1000;
      const [table] = createTables(1, PASSIVE, () => nowMs);
      table.markFailing(SLOT, 'connections');
      vi.setSystemTime(Date.now() + 3_600_000);
      nowMs += 2_000;
      expect(table.healthOf(SLOT)).toMatchObject({ lastedMs: 2_000 });
    } finally {
      vi.useRealTimers();
    }
  });

  test('is not tried while its probes fail too', () => {
    const [table] = createTables(1, { ...PASSIVE, active: true, coolDownMs: 0 });
    for (let count = 0; count < 3; count++) table.noteRefused(SLOT);
    expect(table.claimRetry(SLOT, 0)).toBe(true);
    expect([table.markFailing(SLOT, 'probes'), table.markFailing(SLOT, 'probes')]).toEqual([true, false]);
    expect(table.healthOf(SLOT)).toMatchObject({
      judges: ['connections', 'probes'],
      failingBy: ['connections', 'probes'],
    });
    expect(table.claimRetry(SLOT, 0)).toBe(false);
    expect(table.noteAnswered(SLOT)).toBe(true);
    expect(table.isFailing(SLOT)).toBe(true);
    expect(table.clearFailing(SLOT, 'probes')).toBe(true);
    expect(table.isFailing(SLOT)).toBe(false);
  });

  test('does not fail while health checks are off', () => {
    const [table] = createTables(1, { ...PASSIVE, passive: false });
    for (let count = 0; count < 9; count++) expect(table.noteRefused(SLOT)).toBe(false);
    expect(table.healthOf(SLOT)).toBeNull();
  });
});

describe('a failing replica', () => {
  const names = (pool: ReplicaPool, count: number) =>
    Array.from({ length: count }, () => {
      const lease = pool.acquire('m', new Set());
      if (!(lease instanceof Lease)) return lease;
      using held = lease;
      return held.replica.name;
    });

  test('is skipped, and is picked among the failing ones when no other candidate is left', () => {
    const { pool, registry, shared, setDrained } = createPools(
      ['a', 'b', 'c', 'd'].map((name) => toReplicaConfig(name)),
    );
    const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
    for (const name of ['b', 'c']) shared.health.markFailing(slotOf(name), 'probes');
    expect(names(pool, 4)).toEqual(['a', 'd', 'a', 'd']);
    for (const name of ['a', 'd']) setDrained(name, true);
    expect(names(pool, 4)).toEqual(['b', 'c', 'b', 'c']);
    shared.health.clearFailing(slotOf('c'), 'probes');
    expect(names(pool, 2)).toEqual(['c', 'c']);
  });

  test('is tried before a request waits for one without room', () => {
    const limited = { maxInflight: 1 };
    const { pool, registry, shared } = createPools(
      ['a', 'b'].map((name) => toReplicaConfig(name, ['m'], limited)),
    );
    shared.health.markFailing(registry.find('a')?.slot ?? -1, 'probes');
    const [b, a] = [pool.acquire('m', new Set()), pool.acquire('m', new Set())];
    expect([b, a].map((lease) => (lease instanceof Lease ? lease.replica.name : lease))).toEqual(['b', 'a']);
    expect(pool.acquire('m', new Set())).toBe('busy');
  });

  test('is ok after a drain and an undrain, and so is the next replica in its slot', () => {
    const { registry, shared, setDrained } = createPools([toReplicaConfig('a')]);
    const slot = registry.find('a')?.slot ?? -1;
    shared.health.configure(PASSIVE);
    shared.health.markFailing(slot, 'connections');
    expect(registry.find('a')?.health?.state).toBe('failing');
    setDrained('a', true);
    expect(registry.find('a')?.health).toBeNull();
    setDrained('a', false);
    expect(registry.find('a')?.health).toMatchObject({ state: 'ok', since: null });
    shared.health.markFailing(slot, 'connections');
    shared.clearSlot(slot);
    expect(shared.health.isFailing(slot)).toBe(false);
  });
});
