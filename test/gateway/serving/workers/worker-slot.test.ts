import { expect, test } from 'vitest';
import { restartDelayMs } from '../../../../src/gateway/serving/workers/worker-slot.ts';

test('a worker is replaced at once after a long life, or the first time it ends soon', () => {
  expect([0, 1].map(restartDelayMs)).toEqual([0, 0]);
});

test('the delay before a worker that keeps ending is replaced doubles, up to ten seconds', () => {
  expect([2, 3, 4, 5].map(restartDelayMs)).toEqual([100, 200, 400, 800]);
  expect([9, 10, 1_000].map(restartDelayMs)).toEqual([10_000, 10_000, 10_000]);
});
