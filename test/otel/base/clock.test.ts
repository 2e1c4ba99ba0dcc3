import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { waitAtMost } from '#otel/base';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';

describe('work with a deadline', () => {
  test('resolves to the result of the work, and leaves no timer', async () => {
    const clock = new VirtualClock();
    expect(await waitAtMost(1000, Promise.resolve('done'), clock)).toBe('done');
    expect(clock.sleepsMs).toEqual([]);
  });

  test('resolves to null at the deadline', async () => {
    const clock = new VirtualClock();
    const waited = waitAtMost(1000, new Promise(() => undefined), clock);
    await clock.advance(1000);
    expect(await waited).toBeNull();
  });

  test('resolves to what came while the event loop stood still beyond the deadline', async () => {
    const state = new Int32Array(new SharedArrayBuffer(8));
    const far = new Worker(
      `const { parentPort, workerData: state } = require('node:worker_threads');
       parentPort.postMessage('done');
       Atomics.store(state, 0, 1);
       Atomics.notify(state, 0);`,
      { eval: true, workerData: state },
    );
    const waited = waitAtMost(
      500,
      once(far, 'message').then(([message]) => message),
    );
    // Timers come next.
    await setImmediate();
    Atomics.wait(state, 0, 0);
    Atomics.wait(state, 1, 0, 520);
    expect(await waited).toBe('done');
    await far.terminate();
  });

  test('rejects as the work does, and leaves no timer', async () => {
    const clock = new VirtualClock();
    await expect(waitAtMost(1000, Promise.reject(new Error('broken')), clock)).rejects.toThrow('broken');
    expect(clock.sleepsMs).toEqual([]);
  });
});
