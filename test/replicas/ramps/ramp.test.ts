import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { earnTurn, hasTakenBack, hasTurn, rampShare, spendTurn } from '../../../src/replicas/ramps/ramp.ts';

describe('the share on a ramp', () => {
  test('grows in a straight line from 5 % to an even one', () => {
    const shares = [-1, 0, 15_000, 30_000, 60_000, 90_000].map((elapsedMs) => rampShare(elapsedMs, 60_000));
    expect(shares).toEqual([0.05, 0.05, 0.2875, 0.525, 1, 1]);
  });

  test('never falls, and is above zero at any time', () => {
    const ms = fc.nat(86_400_000);
    fc.assert(
      fc.property(ms, ms, fc.integer({ min: 1, max: 86_400_000 }), (a, b, durationMs) => {
        const [earlier, later] = [
          rampShare(Math.min(a, b), durationMs),
          rampShare(Math.max(a, b), durationMs),
        ];
        expect(earlier).toBeGreaterThan(0);
        expect(later).toBeGreaterThanOrEqual(earlier);
        expect(later).toBeLessThanOrEqual(1);
      }),
    );
  });
});

test('turns that nobody took make no burst, and requests without a turn are set against few later ones', () => {
  let credit = 0;
  for (let request = 0; request < 1_000; request++) credit = earnTurn(credit, 1, 2);
  const taken = [1, 2, 3].map(() => {
    const has = hasTurn(credit);
    credit = spendTurn(credit);
    return has;
  });
  expect(taken).toEqual([true, true, false]);
  for (let request = 0; request < 1_000; request++) credit = spendTurn(credit);
  for (let request = 0; request < 6; request++) credit = earnTurn(credit, 1, 2);
  expect(hasTurn(credit)).toBe(true);
});

describe('prefixes', () => {
  test('come back in the same order in gateways of every version', () => {
    const place = (key: number, seed: number): number => {
      let bits = BigInt.asUintN(32, BigInt(key) * 0x9e3779b1n) ^ BigInt.asUintN(32, BigInt(seed));
      bits = BigInt.asUintN(32, (bits ^ (bits >> 16n)) * 0x21f0aaadn);
      bits = BigInt.asUintN(32, (bits ^ (bits >> 15n)) * 0x735a2d97n);
      return Number(bits ^ (bits >> 15n)) / 2 ** 32;
    };
    for (const key of keys.slice(0, 100)) {
      for (const seed of [0, 1, -5]) {
        const share = place(key, seed);
        expect([share, share + 2 ** -32].map((each) => hasTakenBack(key, seed, each))).toEqual([false, true]);
      }
    }
  });

  const keys = Array.from({ length: 20_000 }, (_, index) => Math.imul(index + 1, 0x85ebca6b) >>> 0);

  test('come back in the share of the ramp, and one that is back stays', () => {
    for (const seed of [0, 1, 0x7fffffff, -5]) {
      let before = new Set<number>();
      for (const share of [0.05, 0.2, 0.5, 0.9, 1]) {
        const back = new Set(keys.filter((key) => hasTakenBack(key, seed, share)));
        expect(Math.abs(back.size / keys.length - share)).toBeLessThan(0.01);
        expect(back.isSupersetOf(before)).toBe(true);
        before = back;
      }
      expect(before.size).toBe(keys.length);
    }
  });
});
