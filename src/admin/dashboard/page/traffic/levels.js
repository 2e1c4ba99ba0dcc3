/** @import { Overview } from '../../overview.ts' */
import { counted, formatCount } from '../elements/format.js';

/** Decides what is shown in amber and in red, and says what is counted. Pure; docs/dashboard.md says the same. */

/** @typedef {'' | 'warn' | 'bad'} Level */
/** @typedef {Overview['replicas'][number]['last_minute']} ReplicaTraffic */

/** Shares of failed requests, or of failed attempts at a replica. */
const WARN_SHARE = 0.01;
const BAD_SHARE = 0.05;
/** One or two failed requests are no red alert, however few requests there are. */
const LEAST_BAD_ERRORS = 3;
/** Shares of requests that were refused because of what the client sent. */
const WARN_CLIENT_SHARE = 0.1;
const LEAST_CLIENT_ERRORS = 3;
/** Shares of a limit, or of the time of an event loop. */
const WARN_USE = 0.8;
const BAD_USE = 0.95;

/**
 * The level of a number of errors among requests, or among attempts at a replica.
 * @param {number} errors
 * @param {number} all
 * @returns {Level}
 */
export function toErrorLevel(errors, all) {
  if (all === 0) return '';
  const share = errors / all;
  if (share >= BAD_SHARE && errors >= LEAST_BAD_ERRORS) return 'bad';
  return share >= WARN_SHARE ? 'warn' : '';
}

/**
 * The level of a number of 4xx answers among requests, or attempts. It is never red: the client can be at fault.
 * @param {number} clientErrors
 * @param {number} all
 * @returns {Level}
 */
export function toClientErrorLevel(clientErrors, all) {
  const isMany = clientErrors >= LEAST_CLIENT_ERRORS && clientErrors >= WARN_CLIENT_SHARE * all;
  return isMany ? 'warn' : '';
}

/**
 * The level of a value that should stay below its limit.
 * @param {number} now
 * @param {number} limit
 * @returns {Level}
 */
export function toUseLevel(now, limit) {
  if (limit <= 0) return '';
  if (now >= BAD_USE * limit) return 'bad';
  return now >= WARN_USE * limit ? 'warn' : '';
}

/**
 * What a share of errors counts.
 * @param {Overview['last_minute']} traffic
 */
export function explainErrors({ requests, errors, client_errors, canceled }) {
  return [
    `${counted(requests, 'request')} in the last minute`,
    `${formatCount(errors)} failed (5xx or truncated)`,
    `${formatCount(client_errors)} answered 4xx`,
    `${formatCount(canceled)} canceled by clients`,
    'latencies are of successes, with waiting and with attempts that failed before',
  ].join(' · ');
}

/**
 * What the figures of a replica count.
 * @param {Pick<ReplicaTraffic, 'requests' | 'attempts' | 'outcomes'>} traffic
 */
export function explainAttempts({ requests, attempts, outcomes }) {
  const { error, not_connected, loading, client_error, canceled, repeated } = outcomes;
  /** Left out where it says nothing. @param {number} count @param {string} what */
  const seldom = (count, what) => (count === 0 ? [] : [`${formatCount(count)} ${what}`]);
  return [
    `${counted(attempts, 'attempt')} in the last minute`,
    `${counted(requests, 'request')} ended here`,
    `${formatCount(error)} failed (5xx, truncated or silent)`,
    `${formatCount(not_connected)} not connected`,
    ...seldom(loading, 'answered while it loads its model'),
    `${formatCount(client_error)} answered 4xx`,
    `${formatCount(canceled)} canceled by clients`,
    ...seldom(repeated, 'repeated on a fresh connection or without include_usage'),
    'latencies are of successes, without waiting and without other attempts',
  ].join(' · ');
}
