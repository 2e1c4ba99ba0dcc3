import { describe, expect, test } from 'vitest';
import { EventLoopShares } from '../../../src/admin/dashboard/event-loop-shares.ts';

/** The times of worker 1, in milliseconds. */
const times = (activeMs: number, idleMs: number) => [{ worker: 1, activeMs, idleMs }];

describe('the share of an event loop', () => {
  test('covers about the last five seconds', () => {
    const shares = new EventLoopShares();
    for (let second = 0; second <= 30; second++)
      shares.sample(times(second * 250, second * 750), second * 1_000);
    expect(shares.shares()).toEqual([{ worker: 1, share: 0.25 }]);
    for (let second = 31; second <= 36; second++) {
      const busyMs = (second - 30) * 1_000;
      shares.sample(times(7_500 + busyMs, 22_500), second * 1_000);
    }
    expect(shares.shares()).toEqual([{ worker: 1, share: 1 }]);
  });

  test('is not that of a moment, however often it is read', () => {
    const shares = new EventLoopShares();
    shares.sample(times(0, 0), 0);
    shares.sample(times(500, 500), 1_000);
    for (let step = 1; step <= 10; step++) shares.sample(times(500 + step, 500), 1_000 + step);
    expect(shares.shares()[0]?.share).toBeCloseTo(0.5, 1);
  });

  test('is that of the new thread when it has replaced another', () => {
    const shares = new EventLoopShares();
    shares.sample(times(9_000, 1_000), 0);
    shares.sample(times(30, 70), 1_000);
    expect(shares.shares()).toEqual([{ worker: 1, share: 0.3 }]);
  });

  test('is zero before the loop has run, and absent while the worker does not run', () => {
    const shares = new EventLoopShares();
    expect(shares.shares()).toEqual([]);
    shares.sample(times(0, 0), 0);
    expect(shares.shares()).toEqual([{ worker: 1, share: 0 }]);
    shares.sample([], 1_000);
    expect(shares.shares()).toEqual([]);
  });
});
