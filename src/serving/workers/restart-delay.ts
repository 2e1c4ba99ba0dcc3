const FIRST_MS = 100;
const LONGEST_MS = 10_000;

/** A worker that lived this long was none of a series that fails at once. */
export const LONG_LIFE_MS = 10_000;

/**
 * How long to wait before a worker is replaced, after so many in a row that did not live long: not at all the first
 * time, then longer each time, so that one that cannot start costs next to nothing.
 */
export function restartDelayMs(shortLives: number): number {
  if (shortLives <= 1) return 0;
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** (shortLives - 2));
}
