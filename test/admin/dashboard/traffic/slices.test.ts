import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SlicedTally } from '../../../../src/admin/dashboard/traffic/slices.ts';
import type { CountedRequest } from '../../../../src/admin/dashboard/traffic/tally.ts';

const SLICES = 4;

const requestOf = (tokens: number): CountedRequest => ({
  outcome: tokens % 3 === 0 ? 'error' : 'success',
  isRequest: true,
  outputTokens: tokens,
  hasGpuTime: tokens % 2 === 0,
  currency: tokens % 3 === 0 ? 'EUR' : null,
  ttftBucket: tokens % 3 === 0 ? -1 : tokens % 7,
  latencyBucket: tokens % 3 === 0 ? -1 : tokens,
});

/** Requests as pairs: how many slices after the one before, and its tokens. */
const requests = fc.array(fc.tuple(fc.nat({ max: SLICES + 1 }), fc.nat({ max: 100 })), { maxLength: 40 });

type Counted = { readonly slice: number; readonly tokens: number };

function toCounted(steps: readonly (readonly [number, number])[]): Counted[] {
  let slice = 0;
  return steps.map(([step, tokens]) => {
    slice += step;
    return { slice, tokens };
  });
}

function count(counted: readonly Counted[]): SlicedTally {
  const sliced = new SlicedTally(SLICES);
  for (const { slice, tokens } of counted) sliced.at(slice).add(requestOf(tokens));
  return sliced;
}

/** The figures of a tally that has counted these requests and nothing before. */
const figuresOf = (counted: readonly Counted[]) =>
  count(counted.map((each) => ({ ...each, slice: 0 })))
    .sumUntil(0)
    .toTraffic(1);

describe('the sum of the kept slices', () => {
  test('is that of the requests in them, whatever was counted and read before', () => {
    fc.assert(
      fc.property(requests, fc.nat({ max: SLICES }), (steps, pause) => {
        const counted = toCounted(steps);
        const sliced = new SlicedTally(SLICES);
        for (const { slice, tokens } of counted) {
          sliced.at(slice).add(requestOf(tokens));
          if (tokens % 5 === 0) sliced.sumUntil(slice);
        }
        const current = (counted.at(-1)?.slice ?? 0) + pause;
        const kept = counted.filter(({ slice }) => slice > current - SLICES);
        expect(sliced.sumUntil(current).toTraffic(1)).toEqual(figuresOf(kept));
      }),
    );
  });

  test('grows by that of another one', () => {
    fc.assert(
      fc.property(requests, requests, (some, others) => {
        const [a, b] = [toCounted(some), toCounted(others)];
        const sliced = count(a);
        sliced.merge(count(b));
        const current = Math.max(a.at(-1)?.slice ?? 0, b.at(-1)?.slice ?? 0);
        const kept = [...a, ...b].filter(({ slice }) => slice > current - SLICES);
        expect(sliced.sumUntil(current).toTraffic(1)).toEqual(figuresOf(kept));
        // What was merged leaves with its slice.
        const later = kept.filter(({ slice }) => slice > current + 1 - SLICES);
        expect(sliced.sumUntil(current + 1).toTraffic(1)).toEqual(figuresOf(later));
      }),
    );
  });
});

test('a slice can be read as long as it is kept', () => {
  const sliced = count([
    { slice: 1, tokens: 10 },
    { slice: 3, tokens: 20 },
  ]);
  expect([0, 1, 2, 3].map((slice) => sliced.find(slice)?.requests)).toEqual([undefined, 1, undefined, 1]);
  sliced.at(5);
  expect(sliced.find(1)).toBeUndefined();
});
