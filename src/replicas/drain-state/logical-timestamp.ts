import { randomBytes } from 'node:crypto';

const TIME_DIGITS = 9; // base 36: enough until the year 5188
const LOGICAL_TIMESTAMP = /^[0-9a-z]{9}-[0-9a-f]{12}$/;

/**
 * A timestamp in the manner of hybrid logical clocks (Kulkarni et al. 2014): milliseconds in base 36, then `random`, 12
 * hexadecimal digits that make it unique. It is greater than `after`, even if the clock is behind; `''` is before all
 * timestamps. Timestamps compare as strings: in the order of time where clocks agree, and in the same order for every
 * gateway where they do not.
 */
export function nextLogicalTimestamp(after: string, epochMs: number, random: string): string {
  const timeMs = Math.max(epochMs, after === '' ? 0 : timeOf(after) + 1);
  return `${timeMs.toString(36).padStart(TIME_DIGITS, '0')}-${random}`;
}

/** The present time as a logical timestamp that is greater than `after`. */
export function newLogicalTimestamp(after: string): string {
  return nextLogicalTimestamp(after, Date.now(), randomBytes(6).toString('hex'));
}

/** Whether a value is a logical timestamp, and not so large that no greater one exists. */
export function isLogicalTimestamp(value: unknown): value is string {
  return typeof value === 'string' && LOGICAL_TIMESTAMP.test(value) && value < 'zzzz';
}

function timeOf(timestamp: string): number {
  return Number.parseInt(timestamp.slice(0, TIME_DIGITS), 36);
}
