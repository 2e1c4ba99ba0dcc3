import { describe, expect, test } from 'vitest';
import { CandidateSet } from '../../../src/replicas/routing/candidate-set.ts';
import { leastInflight } from '../../../src/replicas/routing/least-inflight.ts';
import { ownerOfPrefix } from '../../../src/replicas/routing/prefix-affinity.ts';
import { roundRobin } from '../../../src/replicas/routing/round-robin.ts';
import { createRandom } from './traffic.ts';

const ALL = { isOpen: () => true };
const NOBODY = { isOpen: () => false };

const everyPlace = (count: number) => new CandidateSet(count, () => true);

/** Candidates with these requests in flight, all open but those named. */
function loaded(loads: readonly number[], closed: readonly number[] = []) {
  return {
    isOpen: (place: number) => !closed.includes(place),
    inflightAt: (place: number) => loads[place] ?? 0,
    seedAt: (place: number) => Math.imul(place + 1, 0x9e3779b1),
  };
}

describe('round robin', () => {
  test('takes the one whose turn it is, or the first open one behind it', () => {
    expect(roundRobin(everyPlace(4), 2, ALL)).toBe(2);
    expect(roundRobin(everyPlace(4), 2, loaded([], [2, 3]))).toBe(0);
    expect(roundRobin(everyPlace(4), 2, NOBODY)).toBeNull();
  });

  test('steps over those that are out of the circle without looking at them', () => {
    const circle = new CandidateSet(1000, (place) => place === 999);
    const asked: number[] = [];
    roundRobin(circle, 0, { isOpen: (place) => asked.push(place) > 0 });
    expect(asked).toEqual([999]);
  });
});

describe('least in flight', () => {
  test('takes the one with the fewest, and of several the first in turn', () => {
    expect(leastInflight(everyPlace(4), 0, loaded([3, 1, 2, 1]))).toBe(1);
    expect(leastInflight(everyPlace(4), 2, loaded([3, 1, 2, 1]))).toBe(3);
    expect(leastInflight(everyPlace(4), 0, loaded([3, 1, 2, 1], [1, 3]))).toBe(2);
    expect(leastInflight(everyPlace(4), 0, loaded([0, 0, 0, 0], [0, 1, 2, 3]))).toBeNull();
  });
});

describe('the owner of a prefix', () => {
  const keys = Array.from({ length: 10_000 }, (_, index) => Math.imul(index, 0x85ebca6b) >>> 0);
  const idle = loaded([]);
  const ownersAmong = (circle: CandidateSet) => keys.map((key) => ownerOfPrefix(key, circle, 0, idle));

  test('is the same whosever turn it is', () => {
    for (const key of keys.slice(0, 100)) {
      const owners = [0, 3, 5].map((turn) => ownerOfPrefix(key, everyPlace(8), turn, idle));
      expect(new Set(owners).size).toBe(1);
    }
  });

  test('is any candidate equally often', () => {
    const owned = Array.from({ length: 8 }, () => 0);
    for (const owner of ownersAmong(everyPlace(8))) owned[owner ?? 0] = (owned[owner ?? 0] ?? 0) + 1;
    for (const count of owned) expect(Math.abs(count / 1250 - 1)).toBeLessThan(0.1);
  });

  test('changes only for the prefixes of a replica that is drained', () => {
    const before = ownersAmong(everyPlace(8));
    const after = ownersAmong(new CandidateSet(8, (place) => place !== 3));
    const moved = before.filter((owner, index) => owner !== after[index]);
    expect(new Set(moved)).toEqual(new Set([3]));
    expect(after).not.toContain(3);
  });

  test('is passed over while it has a quarter more in flight than the mean, and only then', () => {
    const circle = everyPlace(4);
    const owner = ownerOfPrefix(7, circle, 0, idle) ?? 0;
    // 40 in flight and one to come: 1.25 × 41 / 4 = 12.8, so that 13 is the most.
    const loads = [9, 9, 9, 9];
    loads[owner] = 12;
    expect(ownerOfPrefix(7, circle, 0, loaded(loads))).toBe(owner);
    loads[owner] = 13;
    expect(ownerOfPrefix(7, circle, 0, loaded(loads))).not.toBe(owner);
  });

  test('is the least loaded where all that have room by the bound are tried or full', () => {
    const circle = everyPlace(3);
    expect(ownerOfPrefix(7, circle, 0, loaded([0, 9, 8], [0]))).toBe(2);
    expect(ownerOfPrefix(7, circle, 0, loaded([0, 9, 8], [0, 1, 2]))).toBeNull();
  });

  test('never leaves a replica more than a quarter above the mean, whatever the prefixes', () => {
    const random = createRandom(1);
    for (const distinct of [1, 3, 1000]) {
      const loads = Array.from({ length: 10 }, () => 0);
      for (let request = 1; request <= 2000; request++) {
        const key = keys[Math.floor(random() * distinct)] ?? 0;
        const owner = ownerOfPrefix(key, everyPlace(10), 0, loaded(loads)) ?? 0;
        loads[owner] = (loads[owner] ?? 0) + 1;
        expect(Math.max(...loads)).toBeLessThanOrEqual(Math.ceil((1.25 * request) / 10));
      }
    }
  });
});
