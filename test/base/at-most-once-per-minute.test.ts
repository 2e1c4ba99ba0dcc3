import { expect, onTestFinished, test, vi } from 'vitest';
import { atMostOncePerMinute } from '#base';

test('an action runs on the first call, and again on the first call after a minute', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let runs = 0;
  const act = atMostOncePerMinute(() => {
    runs += 1;
  });
  act();
  act();
  expect(runs).toBe(1);
  vi.advanceTimersByTime(59_999);
  act();
  expect(runs).toBe(1);
  vi.advanceTimersByTime(1);
  act();
  expect(runs).toBe(2);
});
