/** @import { Overview } from '../overview.ts' */
/** @import { DrainAnswer } from './consequences.js' */

/** How long an answer may take. */
const TIMEOUT_MS = 10_000;

/**
 * What the admin API answered, or that it did not.
 * @template Value
 * @typedef {{ kind: 'answered', value: Value }
 *   | { kind: 'unauthorized' }
 *   | { kind: 'disabled' }
 *   | { kind: 'failed', message: string }} Result
 */

/**
 * Asks for all that the page shows, with the records after this number.
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
 * @param {string} reason may be empty
 * @returns {Promise<Result<DrainAnswer>>}
 */
export function changeDrain(token, name, action, reason) {
  const query = reason === '' ? '' : `?reason=${encodeURIComponent(reason)}`;
  return call('POST', `admin/replicas/${encodeURIComponent(name)}/${action}${query}`, token);
}

/**
 * @template Value
 * @param {'GET' | 'POST'} method
 * @param {string} path relative to the page, which a proxy may have put below a path of its own
 * @param {string} token
 * @returns {Promise<Result<Value>>}
 */
async function call(method, path, token) {
  try {
    const response = await fetch(path, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.status === 401) return { kind: 'unauthorized' };
    if (response.status === 403) return { kind: 'disabled' };
    const value = await response.json();
    if (response.ok) return { kind: 'answered', value };
    return { kind: 'failed', message: String(value?.error?.message ?? `Status ${response.status}.`) };
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    return { kind: 'failed', message: isTimeout ? 'No answer in 10 s.' : 'It cannot be reached.' };
  }
}
