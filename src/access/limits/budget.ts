/*
 * A budget in time: one minute refills what is allowed in one minute, so a cost is the time that refills it. All times
 * are nanoseconds.
 */

/** A budget holds what this time refills. */
export const WINDOW_NS = 60e9;

/** What an engine reports cannot cost a client more than an hour. */
export const MAX_OVERDRAWN_NS = 3600e9;

/** The time that refills so many units of a budget of `perMinute`: rounded down, so that all of them fit. */
export function toCostNs(units: number, perMinute: number): number {
  return Math.floor((units * WINDOW_NS) / perMinute);
}

/** How many whole units a budget holds that is full in `fullInNs`. */
export function toRemaining(fullInNs: number, perMinute: number): number {
  // The clock has whole nanoseconds: a budget that was refilled for one unit may be short of half of one.
  return Math.max(0, Math.floor(((WINDOW_NS - fullInNs + 1) * perMinute) / WINDOW_NS));
}

/** Whole seconds until a budget that is full in `fullInNs` holds a cost: at least 1, for `Retry-After`. */
export function toRetryAfterSeconds(fullInNs: number, costNs: number): number {
  return Math.max(1, Math.ceil((fullInNs + costNs - WINDOW_NS) / 1e9));
}

/** Prints a time as the `x-ratelimit-reset-*` fields have it: `12ms`, `7.66s`, `6m0s`. Rounded up to milliseconds. */
export function printReset(ns: number): string {
  const ms = Math.ceil(ns / 1e6);
  if (ms === 0) return '0s';
  if (ms < 1000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}
