import { describe, expect, test } from 'vitest';
import { toLongRandom } from '#testkit/random.ts';
import { createPairs, EQUAL_PAIRS, type PairScenario } from '#testkit/verdict/simulate-pairs.ts';
import { PairedComparison } from '#verdict/pairs';

/** Compares so many pairs in blocks of ten, or until there is a verdict. */
function compare(changes: Partial<PairScenario>, pairs: number) {
  const next = createPairs({ ...EQUAL_PAIRS, ...changes }, toLongRandom(1));
  const comparison = new PairedComparison(1.01);
  while (comparison.pairs < pairs) {
    comparison.addBlock(Array.from({ length: 10 }, next));
    const { kind, wrong } = comparison.judge({ falseAlarm: 0.001, missed: 0.05 });
    if (kind !== 'open') return { kind, wrong, text: comparison.explain(wrong) };
  }
  return { kind: 'open', wrong: [], text: comparison.toText(0) };
}

describe('a comparison of pairs', () => {
  test('calls a shadow good that is like its primaries', () => {
    expect(compare({}, 2_000)).toMatchObject({ kind: 'good' });
  });

  test.for([
    ['5 % slower', { slowness: 1.05 }, 'gaps'],
    ['one that fails 10 % of its answers', { errorShare: 0.1 }, 'errors'],
    ['one that misses its stop token in a tenth of its answers', { unstoppedShare: 0.1 }, 'finish_reasons'],
    ['one with other weights', { changedShare: 0.8 }, 'outputs'],
  ] as const)('calls a shadow bad that is %s', ([, changes, dimension]) => {
    const { kind, wrong, text } = compare(changes, 5_000);
    expect(kind).toBe('bad');
    expect(wrong).toContain(dimension);
    expect(text).not.toBe('');
  });

  test('says how many pairs there are before it has compared any', () => {
    const comparison = new PairedComparison(1.01);
    expect([0, 1, 5].map((waiting) => comparison.toText(waiting))).toEqual([
      'no pairs',
      '1 pair, too few to compare',
      '5 pairs, too few to compare',
    ]);
  });

  test('takes outputs that differ by chance on both sides for no difference', () => {
    expect(compare({ inexactShare: 0.5 }, 2_000).kind).not.toBe('bad');
  });
});
