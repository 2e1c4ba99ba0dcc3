import { describe, expect, test } from 'vitest';
import type { HealthDecision } from '#replicas/health-state';
import type { Silence } from '#replicas/silence';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { FrozenWatch } from '../../../src/replicas/health/frozen-watch.ts';

const FROZEN_AFTER_MS = 10_000;
const START_MS = 1_000_000;

/** Scripted replicas `a` and `b` of one model and `c` of another, seen by two workers at a time that the test sets. */
function createScene() {
  let nowMs = START_MS;
  const configs = [toReplicaConfig('a'), toReplicaConfig('b'), toReplicaConfig('c', ['other'])];
  const pools = createPools(configs, 2, { nowMs: () => nowMs });
  const { registry, shared } = pools;
  shared.health.configure({
    passive: false,
    active: false,
    failures: 3,
    coolDownMs: 0,
    frozenAfterMs: FROZEN_AFTER_MS,
    peers: null,
  });
  const decisions: HealthDecision[] = [];
  const watch = new FrozenWatch({
    registry,
    table: shared.health,
    silences: shared.silences,
    ramps: shared.ramps,
    decisions: { note: (decision) => void decisions.push(decision) },
  });
  const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
  return {
    ...pools,
    decisions,
    slotOf,
    /** A worker sees these times, in milliseconds since the start. */
    see(name: string, { heardMs, waitingSinceMs }: Silence, worker = 0) {
      const toTime = (ms: number | null) => (ms === null ? null : START_MS + ms);
      shared.silences.note(worker, slotOf(name), {
        heardMs: toTime(heardMs),
        waitingSinceMs: toTime(waitingSinceMs),
      });
    },
    /** So many milliseconds after the start these workers sample and the watch checks. Returns which are frozen. */
    checkAt(ms: number, workers = [0, 1]) {
      nowMs = START_MS + ms;
      for (const worker of workers) shared.silences.noteSampled(worker);
      watch.check({ frozenAfterMs: FROZEN_AFTER_MS, sparesUsual: false });
      return ['a', 'b', 'c'].filter((name) => shared.health.isFailingBy(slotOf(name), 'frozen'));
    },
  };
}

describe('a replica on which a request waits', () => {
  test('is frozen when it was silent for that long and a peer was not; that is decided once', () => {
    const { see, checkAt, decisions } = createScene();
    see('a', { heardMs: 0, waitingSinceMs: 0 });
    see('b', { heardMs: 9_000, waitingSinceMs: null });
    expect(checkAt(9_999)).toEqual([]);
    expect(checkAt(10_000)).toEqual(['a']);
    expect(checkAt(11_000)).toEqual(['a']);
    expect(decisions).toEqual([{ replica: 'a', judge: 'frozen', verdict: 'failing', forMs: 10_000 }]);
  });

  test('is not frozen while its peers are idle, however long the prompt takes', () => {
    const { see, checkAt } = createScene();
    see('a', { heardMs: null, waitingSinceMs: 0 });
    see('b', { heardMs: 1, waitingSinceMs: null });
    expect(checkAt(600_000)).toEqual([]);
  });

  test('is not judged by a replica of another model', () => {
    const { see, checkAt } = createScene();
    see('a', { heardMs: 0, waitingSinceMs: 0 });
    see('c', { heardMs: 29_000, waitingSinceMs: null });
    expect(checkAt(30_000)).toEqual([]);
  });

  test('is not frozen while another of its requests gets bytes, on any worker', () => {
    const { see, checkAt } = createScene();
    see('a', { heardMs: null, waitingSinceMs: 0 }, 0);
    see('a', { heardMs: 25_000, waitingSinceMs: null }, 1);
    see('b', { heardMs: 29_000, waitingSinceMs: null });
    expect(checkAt(30_000)).toEqual([]);
    see('b', { heardMs: 35_000, waitingSinceMs: null });
    expect(checkAt(36_000)).toEqual(['a']);
  });

  test('is not frozen because nothing is asked of it, or only since a moment ago', () => {
    const { see, checkAt } = createScene();
    see('a', { heardMs: 0, waitingSinceMs: null });
    see('b', { heardMs: 29_000, waitingSinceMs: null });
    expect(checkAt(30_000)).toEqual([]);
    see('a', { heardMs: 0, waitingSinceMs: 29_000 });
    expect(checkAt(30_001)).toEqual([]);
  });

  test('is not judged by what a stalled worker has not read; it is when that worker has ended', () => {
    const { see, checkAt, shared } = createScene();
    see('a', { heardMs: 0, waitingSinceMs: 0 });
    checkAt(1_000);
    see('b', { heardMs: 29_000, waitingSinceMs: null });
    expect(checkAt(30_000, [0])).toEqual([]);
    shared.clearWorker(1);
    expect(checkAt(30_001, [0])).toEqual(['a']);
  });
});

describe('a frozen replica', () => {
  function createFrozen() {
    const scene = createScene();
    scene.see('a', { heardMs: 0, waitingSinceMs: 0 });
    scene.see('b', { heardMs: 9_000, waitingSinceMs: null });
    expect(scene.checkAt(10_000)).toEqual(['a']);
    return scene;
  }

  test('is ok with the next byte', () => {
    const { see, checkAt, decisions, shared, slotOf } = createFrozen();
    see('a', { heardMs: 12_000, waitingSinceMs: 12_000 });
    expect(checkAt(12_500)).toEqual([]);
    expect(shared.health.isFailing(slotOf('a'))).toBe(false);
    expect(decisions.at(-1)).toMatchObject({ replica: 'a', judge: 'frozen', verdict: 'ok' });
  });

  test('stays frozen when its requests are given up', () => {
    const { see, checkAt } = createFrozen();
    see('a', { heardMs: 0, waitingSinceMs: null });
    expect(checkAt(60_000)).toEqual(['a']);
  });

  test('is tried by one request when none is in flight on it', () => {
    const { shared, slotOf } = createFrozen();
    expect(shared.health.claimRetry(slotOf('a'), 1)).toBe(false);
    expect(shared.health.claimRetry(slotOf('a'), 0)).toBe(true);
  });

  test('is forgotten with a drain', () => {
    const { setDrained, checkAt } = createFrozen();
    setDrained('a', true);
    expect(checkAt(20_000)).toEqual([]);
  });
});
