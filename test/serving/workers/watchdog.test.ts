import { expect, test } from 'vitest';
import { HangWatch } from '../../../src/serving/workers/watchdog.ts';

function watchTwo() {
  const beats = new Int32Array(new SharedArrayBuffer(8));
  const watch = new HangWatch(beats);
  const beat = (worker: number) => void Atomics.add(beats, worker, 1);
  /** How many looks it takes until the worker hangs. */
  const looksUntilHung = (worker: number) => {
    let looks = 1;
    while (!watch.look(worker)) looks += 1;
    return looks;
  };
  return { watch, beat, looksUntilHung };
}

test('a worker hangs after ten looks without a sign of life, whatever others do', () => {
  const { watch, beat, looksUntilHung } = watchTwo();
  beat(0);
  beat(1);
  expect([watch.look(0), watch.look(1)]).toEqual([false, false]);
  for (let look = 1; look < 10; look++) {
    beat(1);
    expect([watch.look(0), watch.look(1)]).toEqual([false, false]);
  }
  expect(looksUntilHung(0)).toBe(1);
  expect(looksUntilHung(1)).toBe(10);
});

test('one sign of life gives it the whole time again', () => {
  const { watch, beat, looksUntilHung } = watchTwo();
  beat(0);
  for (let look = 0; look < 10; look++) watch.look(0);
  beat(0);
  watch.look(0);
  expect(looksUntilHung(0)).toBe(10);
});

test('a worker that loads its code has a minute, the first as well as its successor', () => {
  const { watch, beat, looksUntilHung } = watchTwo();
  expect(looksUntilHung(0)).toBe(60);
  beat(0);
  watch.look(0);
  watch.begin(0);
  expect(looksUntilHung(0)).toBe(60);
});
