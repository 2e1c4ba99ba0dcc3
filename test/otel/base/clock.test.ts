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

  test('rejects as the work does, and leaves no timer', async () => {
    const clock = new VirtualClock();
    await expect(waitAtMost(1000, Promise.reject(new Error('broken')), clock)).rejects.toThrow('broken');
    expect(clock.sleepsMs).toEqual([]);
  });
});
