import { describe, expect, test } from 'vitest';
import { CandidateSet } from '../../../src/replicas/routing/candidate-set.ts';
import { leastInflight } from '../../../src/replicas/routing/least-inflight.ts';
import { POLICIES } from '../../../src/replicas/routing/policies.ts';
import { ownerOfPrefix } from '../../../src/replicas/routing/prefix-affinity.ts';
import { roundRobin } from '../../../src/replicas/routing/round-robin.ts';
import { createRandom } from './traffic.ts';

const ALL = { isOpen: () => true };
const NONE = { isOpen: () => false };

const setOf = (count: number) => new CandidateSet(count, () => true);

/** Candidates with these requests in flight; all are open except those in `closed`. */
function loaded(loads: readonly number[], closed: readonly number[] = []) {
  return {
    isOpen: (index: number) => !closed.includes(index),
    inflightAt: (index: number) => loads[index] ?? 0,
    seedAt: (index: number) => Math.imul(index + 1, 0x9e3779b1),
    evenSharesOf: ({ size }: CandidateSet) => size,
  };
}

describe('round robin', () => {
  test('takes the candidate at the start, or the first open one after it', () => {
    expect(roundRobin(setOf(4), 2, ALL)).toBe(2);
    expect(roundRobin(setOf(4), 2, loaded([], [2, 3]))).toBe(0);
    expect(roundRobin(setOf(4), 2, NONE)).toBeNull();
  });

  test('does not look at candidates outside the set', () => {
    const set = new CandidateSet(1000, (index) => index === 999);
    const asked: number[] = [];
    roundRobin(set, 0, { isOpen: (index) => asked.push(index) > 0 });
    expect(asked).toEqual([999]);
  });
});

describe('least in flight', () => {
  test('takes the candidate with the fewest, and of several the first from the start on', () => {
    expect(leastInflight(setOf(4), 0, loaded([3, 1, 2, 1]))).toBe(1);
    expect(leastInflight(setOf(4), 2, loaded([3, 1, 2, 1]))).toBe(3);
    expect(leastInflight(setOf(4), 0, loaded([3, 1, 2, 1], [1, 3]))).toBe(2);
    expect(leastInflight(setOf(4), 0, loaded([0, 0, 0, 0], [0, 1, 2, 3]))).toBeNull();
  });
});

describe('the owner of a prefix', () => {
  const keys = Array.from({ length: 10_000 }, (_, index) => Math.imul(index, 0x85ebca6b) >>> 0);
  const idle = loaded([]);
  const ownersAmong = (set: CandidateSet) => keys.map((key) => ownerOfPrefix(key, set, 0, idle));

  test('is the same wherever the search starts', () => {
    for (const key of keys.slice(0, 100)) {
      const owners = [0, 3, 5].map((start) => ownerOfPrefix(key, setOf(8), start, idle));
      expect(new Set(owners).size).toBe(1);
    }
  });

  const mix = (bits: bigint): bigint => {
    let mixed = bits;
    mixed = BigInt.asUintN(32, (mixed ^ (mixed >> 16n)) * 0x85ebca6bn);
    mixed = BigInt.asUintN(32, (mixed ^ (mixed >> 13n)) * 0xc2b2ae35n);
    return mixed ^ (mixed >> 16n);
  };

  test('is the one with the highest weight by the finaliser of MurmurHash3, in gateways of every version', () => {
    for (const key of keys) {
      const weights = Array.from({ length: 8 }, (_, index) =>
        mix(BigInt.asUintN(32, BigInt(key ^ idle.seedAt(index)))),
      );
      const highest = weights.reduce((most, weight) => (weight > most ? weight : most));
      expect(ownerOfPrefix(key, setOf(8), 0, idle)).toBe(weights.indexOf(highest));
    }
  });

  test('is the one with the higher weight also of two whose weights have the same upper half', () => {
    const byUpperHalf = Map.groupBy(
      Array.from({ length: 2_000 }, (_, seed) => seed),
      (seed) => mix(BigInt(seed)) >> 16n,
    );
    const pairs = [...byUpperHalf.values()].filter((seeds) => seeds.length === 2);
    expect(pairs.length).toBeGreaterThan(10);
    for (const pair of pairs) {
      const [first = 0n, second = 0n] = pair.map((seed) => mix(BigInt(seed)));
      const two = { ...idle, seedAt: (index: number) => pair[index] ?? 0 };
      expect(ownerOfPrefix(0, setOf(2), 0, two)).toBe(first > second ? 0 : 1);
    }
  });

  test('is the first from the start on, of candidates that are equal otherwise', () => {
    const alike = { ...idle, seedAt: () => 5 };
    expect([0, 1, 2].map((start) => ownerOfPrefix(7, setOf(3), start, alike))).toEqual([0, 1, 2]);
    const lightest = { ...loaded([1, 0]), seedAt: () => 7 };
    expect(ownerOfPrefix(7, setOf(2), 0, lightest)).toBe(0);
  });

  test('may have its part of what all members of the set have in flight', () => {
    const key = keys.find((each) => ownerOfPrefix(each, setOf(4), 0, idle) === 1) ?? 0;
    // 1.25 × 9 / 4 = 2.8: with one in flight, it may have this one too.
    expect(ownerOfPrefix(key, setOf(4), 0, loaded([0, 1, 0, 7]))).toBe(1);
  });

  test('is nobody without a prefix: the request goes where the fewest are in flight', () => {
    const starts = [0, 1, 2, 3];
    expect(starts.map((start) => POLICIES.prefix_affinity.choose(setOf(4), start, idle, null))).toEqual(
      starts,
    );
  });

  test('is any candidate equally often', () => {
    const owned = Array.from({ length: 8 }, () => 0);
    for (const owner of ownersAmong(setOf(8))) owned[owner ?? 0] = (owned[owner ?? 0] ?? 0) + 1;
    for (const count of owned) expect(Math.abs(count / 1250 - 1)).toBeLessThan(0.1);
  });

  test('changes only for the prefixes of a replica that is drained', () => {
    const before = ownersAmong(setOf(8));
    const after = ownersAmong(new CandidateSet(8, (index) => index !== 3));
    const moved = before.filter((owner, index) => owner !== after[index]);
    expect(new Set(moved)).toEqual(new Set([3]));
    expect(after).not.toContain(3);
  });

  test('is skipped while it has a quarter more in flight than the mean, and only then', () => {
    const set = setOf(4);
    const owner = ownerOfPrefix(7, set, 0, idle) ?? 0;
    // 40 in flight and this one: 1.25 × 41 / 4 = 12.8, so 13 is the most.
    const loads = [9, 9, 9, 9];
    loads[owner] = 12;
    expect(ownerOfPrefix(7, set, 0, loaded(loads))).toBe(owner);
    loads[owner] = 13;
    expect(ownerOfPrefix(7, set, 0, loaded(loads))).not.toBe(owner);
  });

  test('is the least loaded if all candidates below the bound are tried or full', () => {
    const set = setOf(3);
    expect(ownerOfPrefix(7, set, 0, loaded([0, 9, 8], [0]))).toBe(2);
    expect(ownerOfPrefix(7, set, 0, loaded([0, 9, 8], [0, 1, 2]))).toBeNull();
  });

  test('never leaves a replica more than a quarter above the mean, whatever the prefixes', () => {
    const random = createRandom(1);
    for (const distinct of [1, 3, 1000]) {
      const loads = Array.from({ length: 10 }, () => 0);
      for (let request = 1; request <= 2000; request++) {
        const key = keys[Math.floor(random() * distinct)] ?? 0;
        const owner = ownerOfPrefix(key, setOf(10), 0, loaded(loads)) ?? 0;
        loads[owner] = (loads[owner] ?? 0) + 1;
        expect(Math.max(...loads)).toBeLessThanOrEqual(Math.ceil((1.25 * request) / 10));
      }
    }
  });
});
