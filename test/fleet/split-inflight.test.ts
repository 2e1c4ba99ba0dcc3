import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { idleShareOf } from '#access/limits';
import { splitInflight } from '../../src/fleet/inflight-shares.ts';

describe('a limit is divided', () => {
  test.each([
    [10, [0, 0], [5, 5]],
    [11, [0, 0], [6, 5]],
    [10, [20, 0], [10, 0]],
    [10, [20, 30], [5, 5]],
    [10, [2, 30], [2, 8]],
    [10, [2, 4], [4, 6]],
    [10, [3, 30, 30], [3, 4, 3]],
    [1, [1, 1], [1, 0]],
    [10, [5], [10]],
    [10, [1, 6], [3, 7]],
  ])('of %d, with %j wanted', (limit, wanted, shares) => {
    expect(splitInflight(limit, wanted)).toEqual(shares);
  });

  test('wholly, never beyond it, and nobody gets less than it wants while another gets more than its part', () => {
    const wants = fc.array(fc.nat({ max: 2000 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), wants, (limit, wanted) => {
        const shares = splitInflight(limit, wanted);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(limit);
        const lacking = shares.filter((share, rank) => share < (wanted[rank] ?? 0));
        const most = Math.max(...shares);
        for (const share of lacking) expect(most - share).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('evenly while nobody wants anything', () => {
    expect([0, 1, 2].map((rank) => idleShareOf(10, 3, rank))).toEqual([4, 3, 3]);
  });
});
