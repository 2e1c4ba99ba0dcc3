import { randomBytes } from 'node:crypto';

const TIME_DIGITS = 9; // base 36: enough until the year 5188
const STAMP = /^[0-9a-z]{9}-[0-9a-f]{12}$/;

/**
 * The stamp that follows `after` (`''`: nothing): a text that is greater than it, whatever the clock says, and that
 * nobody else makes. Milliseconds in base 36, then `random`, 12 hexadecimal digits. Stamps compare as texts; where
 * clocks agree their order is that of time, and it is the same for everybody where they do not.
 */
export function nextLogicalTimestamp(after: string, epochMs: number, random: string): string {
  const timeMs = Math.max(epochMs, after === '' ? 0 : timeOf(after) + 1);
  return `${timeMs.toString(36).padStart(TIME_DIGITS, '0')}-${random}`;
}

/** The stamp that follows `after`, of now. */
export function newLogicalTimestamp(after: string): string {
  return nextLogicalTimestamp(after, Date.now(), randomBytes(6).toString('hex'));
}

/** Whether a text is a stamp, and not so late that no stamp could follow it. */
export function isLogicalTimestamp(value: unknown): value is string {
  return typeof value === 'string' && STAMP.test(value) && value < 'zzzz';
}

function timeOf(stamp: string): number {
  return Number.parseInt(stamp.slice(0, TIME_DIGITS), 36);
}
