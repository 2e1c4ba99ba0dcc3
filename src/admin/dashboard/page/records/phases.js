/** @import { ShownRecord } from './filters.js' */

/** What a request did when, as its record tells it. Pure. */

/**
 * - `gateway`: it arrived and was read, or nothing else is known
 * - `queue`: it waited because all replicas of its model had reached their `max_inflight`
 * - `failed`: an attempt that failed
 * - `first_token`: it was sent, and its first token had not come
 * - `stream`: tokens came
 * - `silence`: the longest time between two tokens
 * - `answer`: it was sent, and its answer came in one piece or not at all
 * @typedef {'gateway' | 'queue' | 'failed' | 'first_token' | 'stream' | 'silence' | 'answer'} PhaseKind
 */

/**
 * A part of a request: from when to when, in milliseconds after it arrived.
 * @typedef {{ readonly kind: PhaseKind, readonly fromMs: number, readonly untilMs: number, readonly title: string }} Phase
 */

/** @typedef {NonNullable<ShownRecord['failed_attempts']>[number]} FailedAttempt */

/** Shorter parts are noise of the clock. */
const LEAST_MS = 0.05;

/**
 * The parts of a request, one after the other, from its arrival to its end.
 * @param {ShownRecord} record
 * @returns {readonly Phase[]}
 */
export function toPhases(record) {
  const { e2e_ms, queue_ms = 0, failed_attempts = [], attempts = 1, replica } = record;
  const isServed = replica !== undefined && attempts > failed_attempts.length;
  /** @type {Phase[]} */
  const phases = [];
  let atMs = 0;
  let queueMs = queue_ms;
  const add = (/** @type {PhaseKind} */ kind, /** @type {number} */ untilMs, /** @type {string} */ title) => {
    const endMs = Math.min(Math.max(untilMs, atMs), e2e_ms);
    if (endMs - atMs >= LEAST_MS) phases.push({ kind, fromMs: atMs, untilMs: endMs, title });
    atMs = endMs;
  };
  for (const attempt of failed_attempts.toSorted((a, b) => a.after_ms - b.after_ms)) {
    const beganMs = attempt.after_ms - attempt.duration_ms;
    // It is read first, and then it waits.
    const waitedMs = Math.min(queueMs, Math.max(0, beganMs - atMs));
    add('gateway', beganMs - waitedMs, TITLES.gateway);
    add('queue', beganMs, TITLES.queue);
    queueMs -= waitedMs;
    add('failed', attempt.after_ms, `${attempt.replica} ${toFailureWords(attempt)}`);
  }
  add('queue', atMs + queueMs, TITLES.queue);
  if (isServed) addServed(add, record, replica);
  else add('gateway', e2e_ms, phases.length === 0 ? TITLES.gateway : TITLES.end);
  return phases;
}

const TITLES = {
  gateway: 'In the gateway',
  queue: 'Waited for a free replica',
  end: 'Until the gateway answered',
};

/**
 * @param {(kind: PhaseKind, untilMs: number, title: string) => void} add
 * @param {ShownRecord} record
 * @param {string} replica
 */
function addServed(add, { e2e_ms, ttft_ms, silence_ms = 0, silence_after_ms = 0 }, replica) {
  if (ttft_ms === undefined) {
    add('answer', e2e_ms, `Answer of ${replica}`);
    return;
  }
  add('first_token', ttft_ms, `Until the first token of ${replica}`);
  if (silence_ms > 0) {
    add('stream', silence_after_ms, 'Stream');
    add('silence', silence_after_ms + silence_ms, 'Silence in the stream');
  }
  add('stream', e2e_ms, 'Stream');
}

/**
 * What a replica did in an attempt that failed.
 * @param {Pick<FailedAttempt, 'failure' | 'status'>} attempt
 */
export function toFailureWords({ failure, status }) {
  if (failure === 'status_retried') return `answered with ${status ?? 'a status that is retried'}`;
  return FAILURES.get(failure) ?? `failed (${failure})`;
}

/** @type {ReadonlyMap<string, string>} */
const FAILURES = new Map([
  ['not_connected', 'could not be connected to'],
  ['loading', 'was loading its model'],
  ['reset_on_reuse', 'had closed the kept connection'],
  ['usage_refused', 'did not know include_usage'],
  ['upstream_timeout', 'did not answer in time'],
  ['upstream_failed', 'broke off'],
  ['upstream_error', 'sent an error'],
]);

/**
 * How long all parts of a kind took together.
 * @param {readonly Phase[]} phases
 * @param {PhaseKind} kind
 */
export function timeOf(phases, kind) {
  return phases
    .filter((phase) => phase.kind === kind)
    .reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0);
}

/**
 * The part that took longest.
 * @param {readonly Phase[]} phases
 * @returns {Phase | undefined}
 */
export function longestOf(phases) {
  return phases.toSorted((a, b) => b.untilMs - b.fromMs - (a.untilMs - a.fromMs))[0];
}

/** A title in the middle of a sentence; names stay as they are. @param {Phase} phase */
export function toWords({ kind, title }) {
  return kind === 'failed' ? title : title.charAt(0).toLowerCase() + title.slice(1);
}
