import { expect, test } from 'vitest';
import { Watchdog } from '../../../../src/gateway/serving/workers/watchdog.ts';

function watchTwoWorkers() {
  const heartbeats = new Int32Array(new SharedArrayBuffer(8));
  const watchdog = new Watchdog(heartbeats);
  const beat = (worker: number) => void Atomics.add(heartbeats, worker, 1);
  /** How many checks it takes until the worker hangs. */
  const checksUntilHung = (worker: number) => {
    let checks = 1;
    while (!watchdog.isHung(worker)) checks += 1;
    return checks;
  };
  return { watchdog, beat, checksUntilHung };
}

test('a worker hangs after ten checks without a heartbeat, whatever other workers do', () => {
  const { watchdog, beat, checksUntilHung } = watchTwoWorkers();
  beat(0);
  beat(1);
  expect([watchdog.isHung(0), watchdog.isHung(1)]).toEqual([false, false]);
  for (let check = 1; check < 10; check++) {
    beat(1);
    expect([watchdog.isHung(0), watchdog.isHung(1)]).toEqual([false, false]);
  }
  expect(checksUntilHung(0)).toBe(1);
  expect(checksUntilHung(1)).toBe(10);
});

test('one heartbeat gives a worker the full time again', () => {
  const { watchdog, beat, checksUntilHung } = watchTwoWorkers();
  beat(0);
  for (let check = 0; check < 10; check++) watchdog.isHung(0);
  beat(0);
  watchdog.isHung(0);
  expect(checksUntilHung(0)).toBe(10);
});

test('a worker that loads its code has a minute, and so has its replacement', () => {
  const { watchdog, beat, checksUntilHung } = watchTwoWorkers();
  expect(checksUntilHung(0)).toBe(60);
  beat(0);
  watchdog.isHung(0);
  watchdog.reset(0);
  expect(checksUntilHung(0)).toBe(60);
});
