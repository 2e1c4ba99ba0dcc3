/** @import { Overview } from '../../overview.ts' */
/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { Range, Span } from './range.js' */

/** Converts sums of the history to the figures of charts and tables. Pure. */

/** @typedef {Overview['last_minute']} Traffic */
/** @typedef {UsageJson['total']} Sums */

/**
 * The figures of one point of a chart, at its end. Null: it is not known.
 * @typedef {object} Point
 * @property {number} timeMs
 * @property {number} requests
 * @property {number | null} requests_per_s
 * @property {number | null} errors
 * @property {number | null} errors_per_s
 * @property {number | null} inflight
 * @property {number | null} ttft_p95_ms
 * @property {number | null} latency_p95_ms
 * @property {number | null} output_tokens_per_s
 */

/** The name of all that has no row of its own, as the live figures have it. */
export const OTHERS = '_OTHER';

/** The seconds in one slice of the live figures. */
const SLICE_SECONDS = 5;
/** A point of the last step is drawn when this share of it is over: a few seconds would be a peak or a hole. */
const LEAST_STEP_SHARE = 0.2;

/**
 * The live figures as points.
 * @param {Overview['history']} history
 * @returns {readonly Point[]}
 */
export function toLivePoints(history) {
  return history.map((past) => ({
    ...past,
    timeMs: Date.parse(past.time),
    errors_per_s: past.errors / SLICE_SECONDS,
  }));
}

/**
 * The sums of steps as points: a step without a request has one, too. Before the history begins nothing is known.
 * @param {Pick<UsageJson, 'rows' | 'since' | 'kept'>} usage by nothing but time
 * @param {{ readonly stepMs: number, readonly nowMs: number }} steps
 * @returns {readonly Point[]}
 */
export function toPoints({ rows, since, kept }, { stepMs, nowMs }) {
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), row]));
  const keptMs = Date.parse(kept.hours_since);
  /** @type {Point[]} */
  const points = [];
  for (let startMs = Date.parse(since); startMs < nowMs; startMs += stepMs) {
    const endMs = Math.min(startMs + stepMs, nowMs);
    if (endMs - startMs < LEAST_STEP_SHARE * stepMs) break;
    const row = byStart.get(startMs);
    const seconds = (endMs - startMs) / 1_000;
    if (row !== undefined) points.push(toPoint(row, endMs, seconds));
    else points.push(endMs > keptMs ? noRequests(endMs) : unknown(endMs));
  }
  return points;
}

/**
 * @param {Sums} sums
 * @param {number} timeMs
 * @param {number} seconds
 * @returns {Point}
 */
function toPoint(sums, timeMs, seconds) {
  return {
    timeMs,
    requests: sums.requests,
    requests_per_s: sums.requests / seconds,
    errors: sums.errors,
    errors_per_s: sums.errors / seconds,
    inflight: toMeanInflight(sums, seconds),
    ttft_p95_ms: sums.ttft_ms.p95,
    latency_p95_ms: sums.e2e_ms.p95,
    output_tokens_per_s: sums.completion_tokens / seconds,
  };
}

/** @param {number} timeMs @returns {Point} */
function noRequests(timeMs) {
  const none = { requests: 0, requests_per_s: 0, errors: 0, errors_per_s: 0, inflight: 0 };
  return { timeMs, ...none, ttft_p95_ms: null, latency_p95_ms: null, output_tokens_per_s: 0 };
}

/** @param {number} timeMs @returns {Point} */
function unknown(timeMs) {
  const counts = { requests: 0, requests_per_s: null, errors: null, errors_per_s: null, inflight: null };
  return { timeMs, ...counts, ttft_p95_ms: null, latency_p95_ms: null, output_tokens_per_s: null };
}

/**
 * How many requests were in flight on average: those that arrive per second, times the seconds that each takes (Little, "A
 * proof for the queuing formula L = λW", 1961).
 * @param {Sums} sums
 * @param {number} seconds
 */
export function toMeanInflight({ requests, e2e_ms }, seconds) {
  return ((e2e_ms.mean ?? 0) * requests) / 1_000 / seconds;
}

/**
 * The span that sums are of: nothing is known before the history began, nor after now.
 * @param {Pick<UsageJson, 'since' | 'kept'>} usage
 * @param {number} nowMs
 * @returns {Span}
 */
export function toKnownSpan({ since, kept }, nowMs) {
  const fromMs = Math.max(Date.parse(since), Date.parse(kept.hours_since));
  return { fromMs: Math.min(fromMs, nowMs), untilMs: nowMs };
}

/**
 * Sums as figures of traffic, with their cost in this currency.
 * @param {Sums} sums
 * @param {number} seconds
 * @param {string} [currency]
 * @returns {Traffic}
 */
export function toTraffic(sums, seconds, currency = '') {
  const cost = sums.costs[currency] ?? null;
  const perSecond = (/** @type {number} */ count) => count / Math.max(seconds, 1);
  return {
    requests: sums.requests,
    errors: sums.errors,
    client_errors: sums.client_errors,
    canceled: sums.canceled,
    requests_per_s: perSecond(sums.requests),
    output_tokens_per_s: perSecond(sums.completion_tokens),
    gpu_seconds: sums.gpu_seconds === 0 ? null : sums.gpu_seconds,
    cost,
    currency: cost === null ? null : currency,
    ttft_p50_ms: sums.ttft_ms.p50,
    ttft_p95_ms: sums.ttft_ms.p95,
    latency_p50_ms: sums.e2e_ms.p50,
    latency_p95_ms: sums.e2e_ms.p95,
  };
}

/**
 * What a row is of: a name, an empty text if it is not known, or all others.
 * @param {UsageJson['rows'][number]} row
 * @param {UsageJson['by'][number]} dimension
 */
export function nameOf(row, dimension) {
  if (row.other) return OTHERS;
  const name = /** @type {Readonly<Record<string, unknown>>} */ (row)[dimension];
  return typeof name === 'string' ? name : '';
}

/**
 * Rows of models or of tenants as the tables of the live figures have them: all costs in the first currency of the range.
 * @param {UsageJson} usage
 * @param {'model' | 'tenant'} dimension
 * @param {number} seconds
 * @returns {Overview['models']}
 */
export function toParts({ rows, total }, dimension, seconds) {
  const [currency] = Object.keys(total.costs);
  return rows.map((row) => ({
    name: nameOf(row, dimension),
    last_minute: toTraffic(row, seconds, currency),
  }));
}

/** Reasons of a client that left: it did not fail. */
const CANCELED = new Set(['client_closed', '499']);
/** A table lists no more, as that of the live figures. */
const MAX_REASONS = 50;

/**
 * Why a request failed. `status` is null where only the code of the gateway is known.
 * @typedef {Omit<Overview['failure_reasons'][number], 'status'> & { readonly status: number | null }} Reason
 */

/**
 * Why requests failed, the most frequent first.
 * @param {UsageJson} usage by replica and model
 * @returns {readonly Reason[]}
 */
export function toReasons({ rows }) {
  const reasons = rows.flatMap((row) =>
    Object.entries(row.failures).flatMap(([code, count]) => {
      if (CANCELED.has(code)) return [];
      const status = /^\d{3}$/.test(code) ? Number(code) : null;
      return [{ code, status, count, replica: toName(row, 'replica'), model: toName(row, 'model') }];
    }),
  );
  return reasons.toSorted((a, b) => b.count - a.count).slice(0, MAX_REASONS);
}

/**
 * @param {UsageJson['rows'][number]} row
 * @param {'replica' | 'model'} dimension
 */
function toName(row, dimension) {
  const name = nameOf(row, dimension);
  return name === '' ? null : name;
}

/**
 * How the range is called above charts and tables; with when the history begins, if that is within it.
 * @param {Range} range
 * @param {Pick<UsageJson, 'kept'>} usage
 * @param {number} nowMs
 * @param {(epochMs: number) => string} toMoment
 */
export function toCaption({ words, ms, stepMs }, { kept }, nowMs, toMoment) {
  const keptMs = Date.parse(kept.hours_since);
  return keptMs > nowMs - ms + stepMs ? `${words}; the history begins at ${toMoment(keptMs)}` : words;
}
