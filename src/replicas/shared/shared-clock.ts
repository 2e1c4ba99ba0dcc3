import { uptime } from 'node:os';

/**
 * Creates a monotonic clock that shows the same time in all threads, within 10 ms: milliseconds since the machine
 * started. `performance.now` begins with its thread, and the time of day can be set.
 */
export function createSharedClock(): () => number {
  const originMs = uptime() * 1000 - performance.now();
  return () => originMs + performance.now();
}
