/** @import { Overview } from '../../overview.ts' */
/** @import { DrainResponse } from '../replicas/consequences.js' */

/** How long a response with data may take. */
const DATA_TIMEOUT_MS = 10_000;
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
 * @template Value
 * @param {'GET' | 'POST'} method
 * @param {string} path relative to the page, because a proxy may serve it below another path
 * @param {string} token
 * @returns {Promise<Result<Value>>}
 */
async function call(method, path, token) {
  const timeoutMs = method === 'GET' ? DATA_TIMEOUT_MS : CHANGE_TIMEOUT_MS;
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
