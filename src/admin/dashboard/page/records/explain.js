/** @import { ShownRecord } from './filters.js' */
/** @import { Usual } from './like-requests.js' */
/** @import { Phase } from './phases.js' */
import { counted, formatCount, formatMs, formatRate } from '../elements/format.js';
import { toStatusGroup } from './filters.js';
import { longestOf, timeOf, toFailureWords, toPhases, toWords } from './phases.js';

/** Says in one sentence why a request took its time. Pure. */

/** From this many times the median on, a request is slower than usual. */
const SLOW = 1.25;
const FAST = 0.8;
/** So much of what is beyond the usual must be explained by one cause. */
const LEAST_SHARE = 0.3;
/** From this many times the usual on, something is worth a word. */
const FAR = 1.5;

/** @typedef {{ readonly ms: number, readonly sentence: string }} Cause */

/**
 * Why a request took its time, failed, or ended early.
 * @param {ShownRecord} record
 * @param {Usual | null} usual null: not known
 */
export function explain(record, usual) {
  const phases = toPhases(record);
  switch (toStatusGroup(record)) {
    case 'disconnected':
      return `The client left after ${formatMs(record.e2e_ms)}, ${toWhile(phases)}.`;
    case 'client_error':
      return `It was refused with ${toCode(record)}${toLimit(record)} after ${formatMs(record.e2e_ms)}.`;
    case 'server_error':
      return explainFailure(record, phases);
    case 'success':
      return explainTime(record, usual, phases);
  }
}

/**
 * @param {ShownRecord} record
 * @param {readonly Phase[]} phases
 */
function explainFailure(record, phases) {
  const { e2e_ms, failed_attempts = [], replica } = record;
  const queueMs = timeOf(phases, 'queue');
  if (queueMs > e2e_ms / 2 && replica === undefined)
    return `It waited ${formatMs(queueMs)} for a free replica and got none.`;
  const last = failed_attempts.at(-1);
  const isTried = last !== undefined && (record.attempts ?? 1) <= failed_attempts.length;
  if (isTried) {
    const all = counted(failed_attempts.length, 'attempt');
    return failed_attempts.length === 1
      ? `It failed after ${formatMs(e2e_ms)}: ${last.replica} ${toFailureWords(last)}.`
      : `It failed after ${formatMs(e2e_ms)}: ${all} failed, the last because ${last.replica} ${toFailureWords(last)}.`;
  }
  return `It failed with ${toCode(record)} after ${formatMs(e2e_ms)}, ${toWhile(phases)}.`;
}

/** @param {ShownRecord} record */
function toCode({ status, error_type }) {
  return error_type === undefined ? String(status) : `${status} ${error_type}`;
}

/** @param {ShownRecord} record */
function toLimit({ refused_by }) {
  return refused_by === undefined ? '' : ` by ${refused_by}`;
}

/** What it did at its end. @param {readonly Phase[]} phases */
function toWhile(phases) {
  switch (phases.at(-1)?.kind) {
    case 'queue':
      return 'while it waited for a free replica';
    case 'failed':
      return 'while attempts failed';
    case 'first_token':
    case 'answer':
      return 'before its answer was complete';
    case 'stream':
    case 'silence':
      return 'in the middle of the stream';
    default:
      return 'in the gateway';
  }
}

/**
 * @param {ShownRecord} record
 * @param {Usual | null} usual
 * @param {readonly Phase[]} phases
 */
function explainTime(record, usual, phases) {
  const { e2e_ms } = record;
  const p50 = usual?.e2eP50Ms ?? null;
  if (p50 !== null && e2e_ms < FAST * p50)
    return `It was faster than usual: ${formatMs(e2e_ms)}, where half of like requests took more than ${formatMs(p50)}.`;
  if (p50 !== null && e2e_ms <= SLOW * p50)
    return `It took as long as usual: ${formatMs(e2e_ms)}, where half of like requests took up to ${formatMs(p50)}.`;
  const beyondMs = p50 === null ? e2e_ms : e2e_ms - p50;
  const [cause] = toCauses(record, usual, phases).toSorted((a, b) => b.ms - a.ms);
  if (cause !== undefined && cause.ms >= LEAST_SHARE * beyondMs) return cause.sentence;
  if (p50 !== null)
    return `It was slower than usual in all of its parts: ${formatMs(e2e_ms)}, where half of like requests took up to ${formatMs(p50)}.`;
  const longest = longestOf(phases);
  if (longest === undefined) return `It took ${formatMs(e2e_ms)}.`;
  const longestMs = longest.untilMs - longest.fromMs;
  return `Most of its ${formatMs(e2e_ms)} was this: ${toWords(longest)}, ${formatMs(longestMs)}.`;
}

/**
 * What can have made it slow, with the time beyond what is usual.
 * @param {ShownRecord} record
 * @param {Usual | null} usual
 * @param {readonly Phase[]} phases
 * @returns {readonly Cause[]}
 */
function toCauses(record, usual, phases) {
  const causes = [toQueueCause(phases), toAttemptsCause(record, phases), toSilenceCause(phases)];
  if (usual !== null)
    causes.push(
      toFirstTokenCause(record, usual, phases),
      toLengthCause(record, usual),
      toPaceCause(record, usual, phases),
    );
  return causes.filter((cause) => cause !== null);
}

/** @param {readonly Phase[]} phases @returns {Cause | null} */
function toQueueCause(phases) {
  const ms = timeOf(phases, 'queue');
  return ms === 0 ? null : { ms, sentence: `It waited ${formatMs(ms)} for a free replica.` };
}

/** @param {ShownRecord} record @param {readonly Phase[]} phases @returns {Cause | null} */
function toAttemptsCause({ failed_attempts = [], replica }, phases) {
  const [first] = failed_attempts;
  if (first === undefined) return null;
  const ms = timeOf(phases, 'failed');
  const then = replica === undefined ? 'no other one took it' : `${replica} answered`;
  const sentence =
    failed_attempts.length === 1
      ? `The first replica, ${first.replica}, ${toFailureWords(first)}, which took ${formatMs(ms)}; then ${then}.`
      : `${counted(failed_attempts.length, 'attempt')} failed, which took ${formatMs(ms)}; then ${then}.`;
  return { ms, sentence };
}

/** @param {readonly Phase[]} phases @returns {Cause | null} */
function toSilenceCause(phases) {
  const ms = timeOf(phases, 'silence');
  return ms === 0 ? null : { ms, sentence: `There was a silence of ${formatMs(ms)} in the stream.` };
}

/** @param {ShownRecord} record @param {Usual} usual @param {readonly Phase[]} phases @returns {Cause | null} */
function toFirstTokenCause({ prompt_tokens }, { firstTokenP50Ms, promptTokens }, phases) {
  const ms = timeOf(phases, 'first_token');
  if (firstTokenP50Ms === null || ms < FAR * firstTokenP50Ms) return null;
  const isLong = prompt_tokens !== undefined && promptTokens !== null && prompt_tokens > FAR * promptTokens;
  const prompt = isLong
    ? `, with a prompt of ${formatCount(prompt_tokens)} tokens where ${formatCount(promptTokens)} are usual`
    : '';
  const times = formatRate(ms / firstTokenP50Ms);
  return {
    ms: ms - firstTokenP50Ms,
    sentence: `The first token took ${times} times as long as usual: ${formatMs(ms)} instead of ${formatMs(firstTokenP50Ms)}${prompt}.`,
  };
}

/** @param {ShownRecord} record @param {Usual} usual @returns {Cause | null} */
function toLengthCause({ completion_tokens }, { tokens, tokenMs }) {
  if (completion_tokens === undefined || tokens === null || tokenMs === null) return null;
  if (completion_tokens < FAR * tokens) return null;
  return {
    ms: (completion_tokens - tokens) * tokenMs,
    sentence: `It is a long answer: ${formatCount(completion_tokens)} tokens, where ${formatCount(tokens)} are usual.`,
  };
}

/** @param {ShownRecord} record @param {Usual} usual @param {readonly Phase[]} phases @returns {Cause | null} */
function toPaceCause({ completion_tokens }, { tokenMs }, phases) {
  if (completion_tokens === undefined || completion_tokens === 0 || tokenMs === null) return null;
  const spentMs = timeOf(phases, 'stream') + timeOf(phases, 'answer');
  const ownMs = spentMs / completion_tokens;
  if (ownMs < FAR * tokenMs) return null;
  return {
    ms: spentMs - completion_tokens * tokenMs,
    sentence: `Its tokens came slowly: one in ${formatMs(ownMs)} instead of one in ${formatMs(tokenMs)}.`,
  };
}
