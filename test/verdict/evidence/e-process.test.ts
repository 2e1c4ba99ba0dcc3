import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Evidence,
  logEvidence,
  SYMMETRIC_BETS,
  symmetricGains,
  withGains,
} from '../../../src/verdict/evidence/e-process.ts';

describe('the gain of a bet on a symmetric difference', () => {
  test('is 1 on the mean of any value and its mirror image, however far away', () => {
    fc.assert(
      fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), (z) => {
        const [right, left] = [symmetricGains(z), symmetricGains(-z)];
        for (const [bet, gain] of right.entries()) {
          expect((Math.exp(gain) + Math.exp(left[bet] ?? 0)) / 2).toBeCloseTo(1, 9);
        }
      }),
    );
  });

  test('is finite for every difference, and grows with it', () => {
    for (const z of [-1e300, -40, 0, 40, 1e300]) {
      for (const gain of symmetricGains(z)) expect(Number.isNaN(gain)).toBe(false);
    }
    expect(symmetricGains(2).every((gain, bet) => gain > (symmetricGains(1)[bet] ?? 0))).toBe(true);
  });
});

describe('evidence', () => {
  test('is the mean of its bets, also where their stakes are beyond all numbers', () => {
    expect(logEvidence([0, 0, 0])).toBeCloseTo(0);
    expect(logEvidence([Math.log(2), Math.log(4)])).toBeCloseTo(Math.log(3));
    expect(logEvidence([5_000, Number.NEGATIVE_INFINITY])).toBeCloseTo(5_000 - Math.LN2);
  });

  test('grows with a difference that lasts, and stays small without one', () => {
    const evidenceAfter = (z: number) => {
      let evidence: { readonly slow?: Evidence } = {};
      for (let step = 0; step < 50; step++)
        evidence = withGains(evidence, new Map([['slow', symmetricGains(z)]]));
      expect(evidence.slow).toHaveLength(SYMMETRIC_BETS);
      return logEvidence(evidence.slow ?? []);
    };
    expect(evidenceAfter(0.5)).toBeGreaterThan(5);
    expect(evidenceAfter(-0.5)).toBeLessThan(0);
    expect(evidenceAfter(0)).toBeCloseTo(0);
  });

  test('of a claim that a step says nothing of stays as it was', () => {
    expect(withGains<'slow' | 'errors'>({ slow: [1, 2] }, new Map([['errors', [3]]]))).toEqual({
      slow: [1, 2],
      errors: [3],
    });
  });
});
