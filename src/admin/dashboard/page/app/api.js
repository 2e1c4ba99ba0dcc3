/** @import { Overview } from '../../overview.ts' */
/** @import { FoundJson } from '../../../routes/history/record.ts' */
/** @import { TimelineJson } from '../../../routes/history/timeline.ts' */
/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { DrainResponse } from '../replicas/consequences.js' */
/** @import { Action, Rollout, Summary } from '../rollouts/rollout.js' */

/**
 * What the page uses of an answer of GET /admin/records. `next`: where the next page begins; null: there is none.
 * @typedef {{ readonly records: FoundJson['records'], readonly history?: { readonly next: number | null, readonly note: string | null } }} RecordsPage
 */

/** How long a response with data may take. */
const DATA_TIMEOUT_MS = 10_000;
/** The history ends a query that takes 5 s, and others may wait before it. */
const HISTORY_TIMEOUT_MS = 20_000;
/** A drain waits for probes of other replicas, and in a fleet for gateways that do not answer. */
const CHANGE_TIMEOUT_MS = 20_000;

/**
 * The result of a call to the admin API.
 * @template Value
 * @typedef {{ kind: 'ok', value: Value }
 *   | { kind: 'unauthorized' }
 *   | { kind: 'disabled' }
 *   | { kind: 'failed', code: string, message: string }} Result
 */

/**
 * Loads everything that the page shows, with the records after this number.
 * @param {string} token
 * @param {number} after
 * @returns {Promise<Result<Overview>>}
 */
export function fetchOverview(token, after) {
  return call('GET', `admin/overview?after=${after}`, token);
}

/**
 * Exchanges the code of a link for a token.
 * @param {string} code
 * @returns {Promise<Result<{ token: string }>>}
 */
export function openSession(code) {
  return call('POST', 'admin/sign-in', code);
}

/**
 * Drains or undrains a replica.
 * @param {string} token
 * @param {string} name
 * @param {'drain' | 'undrain'} action
 * @param {object} options
 * @param {string} options.reason may be empty
 * @param {string} options.ramp how long the share of turns grows after an undrain; empty: as configured
 * @param {boolean} options.unlessLast whether a drain fails with the code `last_replica` if no other replica answers
 * @returns {Promise<Result<DrainResponse>>}
 */
export function changeDrain(token, name, action, { reason, ramp, unlessLast }) {
  const query = new URLSearchParams(reason === '' ? {} : { reason });
  if (action === 'drain' && unlessLast) query.set('unless_last', 'true');
  if (action === 'undrain' && ramp !== '') query.set('ramp', ramp);
  return call('POST', `admin/replicas/${encodeURIComponent(name)}/${action}?${query}`, token);
}

/**
 * Who used how much.
 * @param {string} token
 * @param {Readonly<Record<string, string>>} query the parameters of GET /admin/usage
 * @returns {Promise<Result<UsageJson>>}
 */
export function fetchUsage(token, query) {
  return call('GET', `admin/usage?${new URLSearchParams(query)}`, token, HISTORY_TIMEOUT_MS);
}

/**
 * What happened since a time: at most the newest 1,000 events.
 * @param {string} token
 * @param {string} since as GET /admin/timeline takes it
 * @returns {Promise<Result<TimelineJson>>}
 */
export function fetchTimeline(token, since) {
  const query = new URLSearchParams({ since, limit: '1000' });
  return call('GET', `admin/timeline?${query}`, token, HISTORY_TIMEOUT_MS);
}

/**
 * The records with an id, from the history.
 * @param {string} token
 * @param {string} id any of the four ids of a record
 * @returns {Promise<Result<FoundJson>>}
 */
export function findRecords(token, id) {
  return call('GET', `admin/records/${encodeURIComponent(id)}`, token, HISTORY_TIMEOUT_MS);
}

/**
 * Records of a span, a page of the history: the newest first.
 * @param {string} token
 * @param {Readonly<Record<string, string>>} query the parameters of GET /admin/records, with `since`
 * @returns {Promise<Result<RecordsPage>>}
 */
export function fetchRecords(token, query) {
  return call('GET', `admin/records?${new URLSearchParams(query)}`, token, HISTORY_TIMEOUT_MS);
}

/**
 * The rollouts that the gateway knows, the newest first.
 * @param {string} token
 * @returns {Promise<Result<{ readonly rollouts: readonly Summary[] }>>}
 */
export function fetchRollouts(token) {
  return call('GET', 'admin/rollouts', token);
}

/**
 * One rollout with its replicas.
 * @param {string} token
 * @param {string} id
 * @returns {Promise<Result<Rollout>>}
 */
export function fetchRollout(token, id) {
  return call('GET', `admin/rollouts/${encodeURIComponent(id)}`, token);
}

/**
 * Asks something of a rollout.
 * @param {string} token
 * @param {string} id
 * @param {Action} action
 * @returns {Promise<Result<Rollout>>}
 */
export function askRollout(token, id, action) {
  return call('POST', `admin/rollouts/${encodeURIComponent(id)}/${action}`, token);
}

/**
 * @template Value
 * @param {'GET' | 'POST'} method
 * @param {string} path relative to the page, because a proxy may serve it below another path
 * @param {string} token
 * @param {number} [timeoutMs]
 * @returns {Promise<Result<Value>>}
 */
async function call(method, path, token, timeoutMs = method === 'GET' ? DATA_TIMEOUT_MS : CHANGE_TIMEOUT_MS) {
  try {
    const response = await fetch(path, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status === 401) return { kind: 'unauthorized' };
    const value = /** @type {Value & { error?: { code?: string, message?: string } }} */ (
      await response.json()
    );
    if (response.ok) return { kind: 'ok', value };
    const { code = '', message = `Status ${response.status}.` } = value?.error ?? {};
    if (code === 'admin_disabled') return { kind: 'disabled' };
    return { kind: 'failed', code: String(code), message: String(message) };
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    return {
      kind: 'failed',
      code: '',
      message: isTimeout
        ? `There was no response within ${timeoutMs / 1000} s.`
        : 'The gateway cannot be reached.',
    };
  }
}
