import { describe, expect, test } from 'vitest';
import type { HealthDecision } from '#replicas/health-state';
import type { Streams } from '#replicas/silence';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { isClearlyMore, PartialFreezes } from '../../../src/replicas/health/partial-freezes.ts';

const COOL_DOWN_MS = 10_000;
const SETTINGS = { coolDownMs: COOL_DOWN_MS, maxFailingShare: 0.5 };

/** Replicas of one model and `other` of another, whose streams the test sets, at a time that it passes. */
function createScene(names: readonly string[] = ['a', 'b', 'c']) {
  let nowMs = 1_000_000;
  const configs = [...names.map((name) => toReplicaConfig(name)), toReplicaConfig('other', ['x'])];
  const pools = createPools(configs, 2, { nowMs: () => nowMs });
  const { registry, shared } = pools;
  const { health: table, silences, ramps } = shared;
  table.configure({
    passive: false,
    active: false,
    failures: 3,
    coolDownMs: COOL_DOWN_MS,
    frozenAfterMs: 1_000_000,
    peers: null,
  });
  const decisions: HealthDecision[] = [];
  const freezes = new PartialFreezes({
    registry,
    table,
    silences,
    ramps,
    decisions: { note: (decision) => void decisions.push(decision) },
  });
  const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
  const hear = () => {
    for (const { slot } of registry.replicas)
      silences.note(0, slot, { heardMs: nowMs, waitingSinceMs: null });
  };
  return {
    ...pools,
    freezes,
    decisions,
    slotOf,
    ramps,
    log: () => decisions.map(({ replica, verdict }) => `${replica} ${verdict}`),
    isFrozen: (name: string) => table.isFailingBy(slotOf(name), 'frozen'),
    /** So many streams of a replica are stuck, of so many; the last one since so long ago. */
    stick(name: string, stuck: number, { running = 20, worker = 0, agoMs = 0 } = {}) {
      const oldestMs = stuck === 0 ? null : nowMs - 8_000;
      const streams: Streams = {
        running,
        silent: stuck,
        stuck,
        oldestMs,
        newestMs: oldestMs && nowMs - agoMs,
      };
      silences.noteStreams(worker, slotOf(name), streams);
    },
    /** So many looks, one per second. Every replica sends something meanwhile. */
    look(count = 2, { areHeard = true } = {}) {
      for (let each = 0; each < count; each++) {
        nowMs += 1_000;
        if (areHeard) hear();
        for (const worker of [0, 1]) silences.noteSampled(worker);
        freezes.check(SETTINGS);
      }
    },
    judgedFromMs: (name: string) => nowMs - silences.judgedFromOf(slotOf(name)),
  };
}

describe('clearly more streams of a replica are stuck than of its peers', () => {
  const of = (stuck: number, running: number, usualStuck = 0) => ({
    running,
    silent: stuck,
    stuck,
    oldestMs: null,
    newestMs: null,
    usualStuck,
  });
  test.each([
    ['four of few, and none of theirs', of(4, 20), [of(0, 20)], true],
    ['three', of(3, 3), [of(0, 20)], false],
    ['four of ninety: a small share', of(4, 90), [of(0, 90)], false],
    ['five of ninety', of(5, 90), [of(0, 90)], true],
    ['as many as theirs', of(30, 100), [of(30, 100), of(28, 100)], false],
    ['half as many again: chance', of(9, 50), [of(6, 50)], false],
    ['a share twice theirs, and no more', of(20, 100), [of(10, 50)], false],
    ['far more than theirs', of(40, 100), [of(8, 100), of(9, 100)], true],
    ['more than theirs now, and no more than theirs usually', of(9, 50), [of(0, 50, 1)], false],
    ['all of them, and its peers have no streams', of(4, 4), [of(0, 0)], true],
    ['all of them, and it has no peers', of(50, 50), [], false],
  ])('%s', (_, own, peers, expected) => {
    expect(isClearlyMore(own, peers, false)).toBe(expected);
  });

  test('again: two suffice where its peers have none', () => {
    expect(isClearlyMore(of(2, 20), [of(0, 20)], true)).toBe(true);
    expect(isClearlyMore(of(1, 1), [of(0, 20)], true)).toBe(false);
    expect(isClearlyMore(of(2, 20), [of(1, 20)], true)).toBe(false);
  });
});

describe('a replica with stuck streams', () => {
  test('is found by the second look, over all workers, with what was seen in words', () => {
    const { stick, look, isFrozen, decisions } = createScene();
    stick('a', 2, { running: 5, worker: 0 });
    stick('a', 2, { running: 6, worker: 1 });
    look(1);
    expect(isFrozen('a')).toBe(false);
    look(1);
    expect(isFrozen('a')).toBe(true);
    expect(decisions).toEqual([
      {
        replica: 'a',
        judge: 'frozen',
        verdict: 'failing',
        forMs: 10_000,
        reason: '4 of 11 streams are silent',
      },
    ]);
  });

  test('is not found if one of two looks finds nothing', () => {
    const { stick, look, log } = createScene();
    for (let turn = 0; turn < 5; turn++) {
      stick('a', 4);
      look(1);
      stick('a', 3);
      look(1);
    }
    expect(log()).toEqual([]);
  });

  test('is not found without peers of its model, nor by peers that have sent nothing lately', () => {
    const alone = createScene(['a']);
    alone.stick('a', 20);
    alone.look(3);
    expect(alone.log()).toEqual([]);
    const { stick, look, log } = createScene();
    look(1);
    look(5, { areHeard: false });
    stick('a', 20, { agoMs: -60_000 });
    look(5, { areHeard: false });
    expect(log()).toEqual([]);
    look(2);
    expect(log()).toEqual(['a failing']);
  });

  test('is not found while its peers have as many', () => {
    const { stick, look, log } = createScene();
    for (const name of ['a', 'b', 'c']) stick(name, 20, { agoMs: -60_000 });
    look(5);
    expect(log()).toEqual([]);
  });

  test('is not found where its peers had as many in the minutes before, and is when they have not had any for long', () => {
    const { stick, look, log } = createScene();
    for (const name of ['b', 'c']) stick(name, 4, { agoMs: -6_000_000 });
    look(60);
    for (const name of ['b', 'c']) stick(name, 0);
    stick('a', 12, { agoMs: -6_000_000 });
    look(10);
    expect(log()).toEqual([]);
    look(600);
    expect(log()[0]).toBe('a failing');
  });

  test('is not found for what is over: no stream has fallen silent for five seconds', () => {
    const { stick, look, log } = createScene();
    stick('a', 20, { agoMs: 5_000 });
    look(10);
    expect(log()).toEqual([]);
  });

  test('is kept when too few others would be left, which is said once in a cool-down', () => {
    const { stick, look, log, setDrained } = createScene(['a', 'b']);
    stick('a', 4, { agoMs: -60_000 });
    setDrained('b', true);
    look(4);
    expect(log()).toEqual([]);
    const three = createScene();
    three.stick('a', 20, { agoMs: -60_000 });
    three.look(2);
    expect(three.log()).toEqual(['a failing']);
    three.stick('b', 20, { agoMs: -60_000 });
    three.look(9);
    expect(three.log()).toEqual(['a failing', 'b kept']);
  });
});

describe('a replica that was found', () => {
  function createFound() {
    const scene = createScene();
    scene.stick('a', 4);
    scene.look(2);
    expect(scene.log()).toEqual(['a failing']);
    return scene;
  }

  test('gets a growing share of its turns after the cool-down, and is judged by what comes then', () => {
    const { look, log, isFrozen, ramps, slotOf, judgedFromMs } = createFound();
    look(9);
    expect(log()).toEqual(['a failing']);
    look(1);
    expect(log()).toEqual(['a failing', 'a probation']);
    expect(isFrozen('a')).toBe(false);
    expect(ramps.progressOf(slotOf('a'))).toMatchObject({ durationMs: COOL_DOWN_MS });
    expect(judgedFromMs('a')).toBe(0);
  });

  test('is ok after three cool-downs in which it is not found again', () => {
    const { look, log, stick } = createFound();
    stick('a', 0);
    look(10);
    look(29);
    expect(log()).toEqual(['a failing', 'a probation']);
    look(1);
    expect(log()).toEqual(['a failing', 'a probation', 'a ok']);
    stick('a', 2);
    look(2);
    expect(log()).toHaveLength(3);
  });

  test('is found again by two streams, and is away for longer each time, up to four cool-downs', () => {
    const { look, log, stick, isFrozen } = createFound();
    const awayS: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      let seconds = 0;
      while (isFrozen('a')) {
        look(1);
        seconds++;
      }
      awayS.push(seconds);
      stick('a', 2);
      look(2);
      expect(isFrozen('a')).toBe(true);
    }
    expect(awayS).toEqual([10, 20, 40, 40]);
    expect(new Set(log())).toEqual(new Set(['a failing', 'a probation']));
  });

  test('is forgotten with a drain', () => {
    const { look, log, stick, setDrained, isFrozen, freezes, registry, judgedFromMs } = createFound();
    stick('a', 0);
    setDrained('a', true);
    look(1);
    setDrained('a', false);
    look(1);
    expect(isFrozen('a')).toBe(false);
    const replica = registry.find('a');
    expect(replica && freezes.isOut(replica)).toBe(false);
    expect(judgedFromMs('a')).toBe(0);
    look(30);
    expect(log()).toEqual(['a failing']);
  });
});
