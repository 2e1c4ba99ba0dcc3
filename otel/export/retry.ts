/** The longest Retry-After that is obeyed: after an hour, records would be dropped that the collector could have taken. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * How long to wait before the next attempt: exponential back-off with full jitter, from 0 to
 * `initialMs` × 2^(failures − 1), at most `maxMs`. A collector's Retry-After is obeyed, but is at least `initialMs`
 * (Collectors send 0 for anything below a second), plus up to `initialMs` of jitter, so that several gateways do not
 * come back at the same moment.
 * `failures` counts from 1; `random` is in [0, 1).
 */
export function nextDelayMs(attempt: {
  readonly failures: number;
  readonly initialMs: number;
  readonly maxMs: number;
  readonly retryAfterMs?: number | undefined;
  readonly random: number;
}): number {
  const { failures, initialMs, maxMs, retryAfterMs, random } = attempt;
  if (retryAfterMs !== undefined) return Math.max(retryAfterMs, initialMs) + random * initialMs;
  return random * Math.min(maxMs, initialMs * 2 ** (failures - 1));
}

/**
 * Parses a Retry-After header (RFC 9110 §10.2.3), seconds or an HTTP date, to milliseconds from now, at most one minute.
 * A date in the past gives 0; anything else gives undefined.
 */
export function parseRetryAfterMs(header: string | undefined, nowEpochMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const delayMs = /^\d+$/.test(text) ? Number(text) * 1000 : parseHttpDate(text) - nowEpochMs;
  if (Number.isNaN(delayMs)) return undefined;
  return Math.min(Math.max(delayMs, 0), MAX_RETRY_AFTER_MS);
}

/** Date.parse alone would accept `-1` and `1.5`; an HTTP date begins with the name of a day. */
function parseHttpDate(text: string): number {
  return /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN;
}
