import { expect, test } from 'vitest';
import { printReset, toCostNs, toRemaining, toRetryAfterSeconds } from '../../../src/access/limits/budget.ts';

test.each([
  [0, '0s'],
  [1, '1ms'],
  [12e6, '12ms'],
  [1e9, '1s'],
  [7.66e9, '7.66s'],
  [360e9, '6m0s'],
  [3600e9, '1h0m0s'],
  [5430e9, '1h30m30s'],
])('%s ns print as %s', (ns, text) => {
  expect(printReset(ns)).toBe(text);
});

test.each([1, 7, 11, 600, 10_000_000])(
  'all units of a budget of %s per minute fit, and are counted one by one',
  (perMinute) => {
    const costNs = toCostNs(1, perMinute);
    expect(costNs * perMinute).toBeLessThanOrEqual(60e9);
    expect(toRemaining(0, perMinute)).toBe(perMinute);
    expect(toRemaining(costNs, perMinute)).toBe(perMinute - 1);
    expect(toRemaining(60e9, perMinute)).toBe(0);
    expect(toRemaining(120e9, perMinute)).toBe(0);
  },
);

test('the wait is whole seconds, rounded up, and at least one', () => {
  expect(toRetryAfterSeconds(60e9, 0.1e9)).toBe(1);
  expect(toRetryAfterSeconds(60e9, 1.1e9)).toBe(2);
  expect(toRetryAfterSeconds(600e9, 60e9)).toBe(600);
  expect(toRetryAfterSeconds(600e9 + 1, 60e9)).toBe(601);
  expect(toRetryAfterSeconds(0, 1e9)).toBe(1);
});
