import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  isLogicalTimestamp,
  nextLogicalTimestamp,
} from '../../../src/replicas/drain-state/logical-timestamp.ts';

const epochMs = fc.integer({ min: 0, max: 4_000_000_000_000 });
const random = fc.stringMatching(/^[0-9a-f]{12}$/);

test('a logical timestamp is greater than the one before it, however wrong the clock is', () => {
  fc.assert(
    fc.property(epochMs, random, epochMs, random, (before, one, now, other) => {
      const first = nextLogicalTimestamp('', before, one);
      const second = nextLogicalTimestamp(first, now, other);
      expect(second > first).toBe(true);
      expect([first, second].every(isLogicalTimestamp)).toBe(true);
    }),
  );
});

test('logical timestamps of clocks that agree are in the order of time', () => {
  const timestamps = [1, 35, 36, 1_800_000_000_000].map((ms) => nextLogicalTimestamp('', ms, 'ffffffffffff'));
  expect(timestamps.toSorted()).toEqual(timestamps);
});

test.each([
  '',
  '0mwqesp5m',
  '0mwqesp5m-CDF0375d04eb',
  '0mwqesp5m-cdf0375d04eb1',
  'zzzzzzzzz-cdf0375d04eb',
  7,
  null,
])('%j is not a logical timestamp that another can follow', (value) => {
  expect(isLogicalTimestamp(value)).toBe(false);
});
