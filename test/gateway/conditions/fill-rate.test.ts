import { expect, test } from 'vitest';
import { FillRate } from '../../../src/gateway/conditions/export-conditions.ts';

function createRate() {
  let nowMs = 0;
  const rate = new FillRate(() => nowMs);
  return (fill: number, afterMs = 1_000) => {
    nowMs += afterMs;
    return rate.untilFull(fill);
  };
}

test('what grows evenly is full when its rate says', () => {
  const look = createRate();
  expect(look(0.1)).toBeNull();
  expect(look(0.2)).toBeCloseTo(8_000);
  for (const fill of [0.3, 0.4, 0.5, 0.6]) look(fill);
  expect(look(0.7)).toBeCloseTo(3_000);
});

test('what stays, shrinks or is full does not fill up', () => {
  const look = createRate();
  expect([look(0.6), look(0.6), look(0.5), look(1)]).toEqual([null, null, null, null]);
});

test('only the last seconds count', () => {
  const look = createRate();
  look(0);
  for (let second = 0; second < 10; second += 1) look(0.6);
  expect(look(0.6)).toBeNull();
});

test('looks in quick succession are measured from the same time', () => {
  const look = createRate();
  look(0.5);
  expect(look(0.6, 1_000)).toBeCloseTo(4_000);
  expect(look(0.6, 1)).toBeCloseTo(4_004);
});
