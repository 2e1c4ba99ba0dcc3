import { describe, expect, test } from 'vitest';
import { decideFollow, type FollowFacts } from '../../src/background/decide-follow.ts';

const decide = (facts: Partial<FollowFacts>) =>
  decideFollow({ ageMs: 0, limitMs: 3_600_000, misses: 0, state: 'open', ...facts });

describe('a response in the background', () => {
  test('is looked at after an eighth of its age, between a quarter of a second and five seconds', () => {
    const waits = [0, 1_000, 8_000, 20_000, 60_000].map((ageMs) => decide({ ageMs }));
    expect(waits).toEqual(
      [250, 250, 1_000, 2_500, 5_000].map((inMs) => ({ kind: 'ask_again', inMs, isKnown: true })),
    );
  });

  test('is looked at for the last time when its limit is over', () => {
    expect(decide({ ageMs: 3_599_000 })).toMatchObject({ inMs: 1_000 });
    for (const state of ['open', 'missing', 'unclear', 'unreachable', null] as const) {
      expect(decide({ ageMs: 3_600_000, misses: 1, state })).toEqual({ kind: 'end', end: 'over_limit' });
    }
    expect(decide({ ageMs: 3_600_000, state: 'ended' })).toEqual({ kind: 'end', end: 'ended' });
  });

  test('is lost when the replica does not have it three times in a row', () => {
    expect(decide({ ageMs: 60_000, state: 'missing', misses: 2 })).toEqual({
      kind: 'ask_again',
      inMs: 250,
      isKnown: false,
    });
    expect(decide({ ageMs: 60_000, state: 'missing', misses: 3 })).toEqual({ kind: 'end', end: 'lost' });
  });

  test.each(['unclear', 'unreachable', null] as const)('is not known if the answer is %s', (state) => {
    expect(decide({ state })).toMatchObject({ kind: 'ask_again', isKnown: false });
  });
});
