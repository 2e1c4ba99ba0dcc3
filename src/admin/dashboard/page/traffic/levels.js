/** @import { Overview } from '../../overview.ts' */
import { counted, formatCount } from '../elements/format.js';

/** Decides what is shown in amber and in red, and says what is counted. Pure; docs/dashboard.md says the same. */

/** @typedef {'' | 'warn' | 'bad'} Level */

/** Shares of failed requests. */
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
 * The level of a number of errors among requests.
 * @param {number} errors
 * @param {number} requests
 * @returns {Level}
 */
export function toErrorLevel(errors, requests) {
  if (requests === 0) return '';
  const share = errors / requests;
  if (share >= BAD_SHARE && errors >= LEAST_BAD_ERRORS) return 'bad';
  return share >= WARN_SHARE ? 'warn' : '';
}

/**
 * The level of a number of 4xx answers among requests. It is never red: the client can be at fault.
 * @param {number} clientErrors
 * @param {number} requests
 * @returns {Level}
 */
export function toClientErrorLevel(clientErrors, requests) {
  const isMany = clientErrors >= LEAST_CLIENT_ERRORS && clientErrors >= WARN_CLIENT_SHARE * requests;
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
    'latencies are of successes',
  ].join(' · ');
}
