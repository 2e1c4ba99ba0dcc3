import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  allocateEventLoopDelays,
  clearEventLoopDelay,
  publishEventLoopDelay,
  readEventLoopDelays,
} from '../../../otel/metrics/event-loop-delay.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

function blockEventLoop(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Resolves when the event loop has run the timers that are due. */
async function nextTurn(): Promise<void> {
  await setImmediate(); // still in the turn that was blocked
  await setImmediate();
}

test('a thread that is blocked shows it, until it ends', async () => {
  const memory = allocateEventLoopDelays(1);
  const stop = publishEventLoopDelay(memory, 1);
  expect(readEventLoopDelays(memory)).toEqual([]);
  const readLongest = () => readEventLoopDelays(memory)[0]?.maxMs ?? 0;
  // The first tick of the monitor only starts its clock.
  while (readLongest() < 100) {
    blockEventLoop(150);
    await nextTurn();
    vi.advanceTimersByTime(1000);
  }
  const [delay, ...others] = readEventLoopDelays(memory);
  expect(others).toEqual([]);
  expect(delay?.thread).toBe(1);
  expect(delay?.p50Ms).toBeLessThanOrEqual(delay?.p99Ms ?? 0);
  expect(delay?.p99Ms).toBeLessThanOrEqual((delay?.maxMs ?? 0) * 1.01);
  stop();
  clearEventLoopDelay(memory, 1);
  expect(readEventLoopDelays(memory)).toEqual([]);
});
