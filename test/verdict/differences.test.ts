import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Counts, countGains } from '../../src/verdict/count-difference.ts';
import { type Pair, rankDifference } from '../../src/verdict/rank-difference.ts';

const values = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 8 });
const toPair = (own: readonly number[], peers: readonly number[]): Pair => ({
  own: Float64Array.from(own).sort(),
  peers: Float64Array.from(peers).sort(),
});

/** Wilcoxon's statistic by its definition: mid-ranks, and the variance of a draw of ranks without replacement. */
function byDefinition(own: readonly number[], peers: readonly number[]): number | null {
  const all = [...own, ...peers];
  const rankOf = (value: number) =>
    all.filter((each) => each < value).length + (all.filter((each) => each === value).length + 1) / 2;
  const ranks = all.map(rankOf);
  const middle = (all.length + 1) / 2;
  const excess = own.reduce((sum, value) => sum + rankOf(value) - middle, 0);
  const spread = ranks.reduce((sum, rank) => sum + (rank - middle) ** 2, 0) / all.length;
  const variance = (own.length * peers.length * spread) / (all.length - 1);
  return variance < 1e-9 ? null : excess / Math.sqrt(variance);
}

describe('the difference of ranks', () => {
  test('is that of Wilcoxon, ties included', () => {
    fc.assert(
      fc.property(values, values, (own, peers) => {
        const expected = byDefinition(own, peers);
        const found = rankDifference([toPair(own, peers)]);
        if (expected === null) expect(found).toBeNull();
        else expect(found).toBeCloseTo(expected, 9);
      }),
    );
  });

  test('has the other sign when the sides change places', () => {
    fc.assert(
      fc.property(values, values, (own, peers) => {
        const found = rankDifference([toPair(own, peers)]);
        const mirrored = rankDifference([toPair(peers, own)]);
        expect(found === null).toBe(mirrored === null);
        if (found !== null && mirrored !== null) expect(found).toBeCloseTo(-mirrored, 9);
      }),
    );
  });

  test('compares what is alike: a mix of long and short requests is no difference', () => {
    const short = toPair([10, 11, 12, 13, 14, 15], [10.5, 12.5]);
    const long = toPair([1_000, 1_030], [1_005, 1_010, 1_015, 1_020, 1_025, 1_028]);
    expect(Math.abs(rankDifference([short, long]) ?? 9)).toBeLessThan(1);
    const together = toPair([...short.own, ...long.own], [...short.peers, ...long.peers]);
    expect(rankDifference([together])).toBeLessThan(-1.2);
  });

  test('scales and shifts the own values', () => {
    const pair = toPair([12, 24, 36], [10, 20, 30]);
    expect(rankDifference([pair], { scale: 1 / 1.2 })).toBe(0);
    expect(rankDifference([toPair([0.25, 0.5], [0.375, 0.625])], { shift: 0.125 })).toBeCloseTo(0, 9);
  });

  test('is unknown without like requests', () => {
    expect(rankDifference([])).toBeNull();
    expect(rankDifference([toPair([1], [])])).toBeNull();
    expect(rankDifference([toPair([1, 1], [1])])).toBeNull();
  });
});

const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);

describe('the gain of a bet on a count', () => {
  const totals = fc.record({
    ownTotal: fc.integer({ min: 1, max: 12 }),
    peersTotal: fc.integer({ min: 1, max: 12 }),
    harmless: fc.constantFrom(1, 1.5, 3),
  });

  test('is 1 on the mean at the harmless ratio, and less below it', () => {
    fc.assert(
      fc.property(totals, fc.nat(24), fc.constantFrom(0.5, 1), (given, share, ratio) => {
        const { ownTotal, peersTotal, harmless } = given;
        const concerned = share % (ownTotal + peersTotal + 1);
        const means = [0, 0, 0, 0];
        let weights = 0;
        for (let own = 0; own <= concerned; own++) {
          if (own > ownTotal || concerned - own > peersTotal) continue;
          const weight =
            choose(ownTotal, own) * choose(peersTotal, concerned - own) * (harmless * ratio) ** own;
          weights += weight;
          const gains = countGains({ own, ownTotal, peers: concerned - own, peersTotal }, harmless);
          for (const [bet, gain] of gains.entries()) means[bet] = (means[bet] ?? 0) + weight * Math.exp(gain);
        }
        for (const mean of means) {
          if (ratio === 1) expect(mean / weights).toBeCloseTo(1, 6);
          else expect(mean / weights).toBeLessThan(1 + 1e-9);
        }
      }),
    );
  });

  test('is finite for thousands of requests, and large if only the replica is concerned', () => {
    const counts: Counts = { own: 40, ownTotal: 4_000, peers: 0, peersTotal: 12_000 };
    expect(Math.max(...countGains(counts, 1.5))).toBeGreaterThan(20);
    const all: Counts = { own: 4_000, ownTotal: 4_000, peers: 12_000, peersTotal: 12_000 };
    for (const gain of countGains(all, 1.5)) expect(gain).toBeCloseTo(0, 6);
  });

  test('is nothing where nothing was concerned, or one side had no requests', () => {
    expect(countGains({ own: 0, ownTotal: 5, peers: 0, peersTotal: 5 }, 1.5)).toEqual([0, 0, 0, 0]);
    expect(countGains({ own: 5, ownTotal: 5, peers: 0, peersTotal: 0 }, 1.5)).toEqual([0, 0, 0, 0]);
  });
});
