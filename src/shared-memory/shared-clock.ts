import { hrtime } from 'node:process';

/** A pause between two readings makes the origin wrong by as much: of several, the quickest counts. */
const READING_COUNT = 5;

/**
 * Creates a monotonic clock that shows the same time in all threads, within a few microseconds: milliseconds since a
 * moment that they share. `performance.now` begins with its thread, and the time of day can be set.
 */
export function createSharedClock(): () => number {
  let originMs = 0;
  let bestMs = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < READING_COUNT; reading++) {
    const beforeMs = performance.now();
    const [seconds, nanoseconds] = hrtime();
    const tookMs = performance.now() - beforeMs;
    if (tookMs >= bestMs) continue;
    bestMs = tookMs;
    originMs = seconds * 1e3 + nanoseconds / 1e6 - beforeMs - tookMs / 2;
  }
  return () => originMs + performance.now();
}
