/** A collector that asks for an hour would make us drop what it could have had: we ask again after a minute. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * How long to wait before the next try: exponential back-off with full jitter, from 0 up to
 * `initialMs` × 2^(failures − 1), at most `maxMs`. A collector's Retry-After is kept, but never below
 * `initialMs` (Collectors send 0 for anything under a second), with up to `initialMs` of jitter on top so that
 * several gateways do not come back in the same instant.
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
 * Reads a Retry-After header (RFC 9110 §10.2.3): whole seconds or an HTTP date, given in milliseconds from now,
 * at most one minute. A date in the past is 0; what is neither is undefined.
 */
export function parseRetryAfterMs(header: string | undefined, nowEpochMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const delayMs = /^\d+$/.test(text) ? Number(text) * 1000 : parseHttpDate(text) - nowEpochMs;
  if (Number.isNaN(delayMs)) return undefined;
  return Math.min(Math.max(delayMs, 0), MAX_RETRY_AFTER_MS);
}

/** Date.parse alone would take `-1` and `1.5` for dates; an HTTP date begins with the name of a day. */
function parseHttpDate(text: string): number {
  return /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN;
}
