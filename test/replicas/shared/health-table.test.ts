import { describe, expect, test, vi } from 'vitest';
import { Lease } from '../../../src/replicas/data/lease.ts';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { HealthSettings } from '../../../src/replicas/shared/health-table.ts';
import { allocateSharedState, SharedState } from '../../../src/replicas/shared/shared-state.ts';
import { createPools, toReplicaConfig } from '../../support/pool.ts';

const PASSIVE: HealthSettings = { passive: true, active: false, failures: 3, coolDownMs: 10_000 };
const SLOT = 7;

/** The board as so many threads see it. */
function createBoards(count: number, settings = PASSIVE) {
  const memory = allocateSharedState(1);
  const boards = Array.from({ length: count }, () => new SharedState(memory).health);
  for (const board of boards) board.configure(settings);
  return boards as [SharedState['health'], SharedState['health']];
}

describe('a replica whose connections are refused', () => {
  test('fails from the third in a row on, whichever threads they were of; one of them learns it', () => {
    const [one, other] = createBoards(2);
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

  test('is ok with the next answer; one thread learns it', () => {
    const [one, other] = createBoards(2);
    for (let count = 0; count < 3; count++) one.noteRefused(SLOT);
    expect([other.noteAnswered(SLOT), one.noteAnswered(SLOT)]).toEqual([true, false]);
    expect(one.healthOf(SLOT)).toMatchObject({ state: 'ok', since: expect.any(String) });
  });

  test('does not fail as long as an answer comes in between', () => {
    const [board] = createBoards(1);
    for (let count = 0; count < 9; count++) {
      expect(board.noteRefused(SLOT)).toBe(false);
      if (count % 2 === 1) board.noteAnswered(SLOT);
    }
    expect(board.healthOf(SLOT)).toEqual({ state: 'ok', since: null });
  });

  test('is tried by one request once in a cool-down, of all threads', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      const [one, other] = createBoards(2);
      for (let count = 0; count < 3; count++) one.noteRefused(SLOT);
      expect([one.claimRetry(SLOT), other.claimRetry(SLOT)]).toEqual([false, false]);
      vi.advanceTimersByTime(10_000);
      expect([one.claimRetry(SLOT), other.claimRetry(SLOT)]).toEqual([true, false]);
      vi.advanceTimersByTime(9_999);
      expect(one.claimRetry(SLOT)).toBe(false);
      vi.advanceTimersByTime(1);
      expect(other.claimRetry(SLOT)).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  test('is left to the probes where those fail too', () => {
    const [board] = createBoards(1, { ...PASSIVE, active: true, coolDownMs: 0 });
    for (let count = 0; count < 3; count++) board.noteRefused(SLOT);
    expect(board.claimRetry(SLOT)).toBe(true);
    expect(board.markFailing(SLOT, 'probes')).toBe(false);
    expect(board.claimRetry(SLOT)).toBe(false);
    expect(board.noteAnswered(SLOT)).toBe(false);
    expect(board.clearFailing(SLOT, 'probes')).toBe(true);
    expect(board.isFailing(SLOT)).toBe(false);
  });

  test("is nobody's business unless health is on", () => {
    const [board] = createBoards(1, { ...PASSIVE, passive: false });
    for (let count = 0; count < 9; count++) expect(board.noteRefused(SLOT)).toBe(false);
    expect(board.healthOf(SLOT)).toBeNull();
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

  test('costs the others no turn, and has its turns with the other failing ones when nobody else is left', () => {
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

  test('comes behind those that were tried, and before waiting for those without room', () => {
    const limited = { maxInflight: 1 };
    const { pool, registry, shared } = createPools(
      ['a', 'b'].map((name) => toReplicaConfig(name, ['m'], limited)),
    );
    shared.health.markFailing(registry.find('a')?.slot ?? -1, 'probes');
    const [b, a] = [pool.acquire('m', new Set()), pool.acquire('m', new Set())];
    expect([b, a].map((lease) => (lease instanceof Lease ? lease.replica.name : lease))).toEqual(['b', 'a']);
    expect(pool.acquire('m', new Set())).toBe('busy');
  });

  test('is ok when it was drained and undrained, and so is whoever gets its slot', () => {
    const { registry, shared, setDrained } = createPools([toReplicaConfig('a')]);
    const slot = registry.find('a')?.slot ?? -1;
    shared.health.configure(PASSIVE);
    shared.health.markFailing(slot, 'connections');
    expect(registry.find('a')?.health?.state).toBe('failing');
    setDrained('a', true);
    expect(registry.find('a')?.health).toBeNull();
    setDrained('a', false);
    expect(registry.find('a')?.health).toEqual({ state: 'ok', since: null });
    shared.health.markFailing(slot, 'connections');
    shared.clearSlot(slot);
    expect(shared.health.isFailing(slot)).toBe(false);
  });
});
