import { expect, test } from 'vitest';
import { restartDelayMs } from '../../../src/serving/workers/restart-delay.ts';

test('a worker that ends after a long life, or the first time, is replaced at once', () => {
  expect([0, 1].map(restartDelayMs)).toEqual([0, 0]);
});

test('workers that end at once are replaced ever later, and at least every ten seconds', () => {
  expect([2, 3, 4, 5].map(restartDelayMs)).toEqual([100, 200, 400, 800]);
  expect([9, 10, 1_000].map(restartDelayMs)).toEqual([10_000, 10_000, 10_000]);
});
