/** @import { Replica } from './consequences.js' */
import { counted, formatAgo, formatCount } from './format.js';

/** @typedef {'serving' | 'failing' | 'draining' | 'unsure' | 'safe'} StateKind */

/**
 * The state of a replica in a few words.
 * @param {Replica} replica
 * @returns {{ readonly kind: StateKind, readonly text: string }}
 */
export function toState({ drained, health, removing, inflight, safe_to_stop }) {
  if (removing) return { kind: 'draining', text: `Being removed, ${counted(inflight, 'request')} left` };
  if (!drained)
    return health === 'failing' ? { kind: 'failing', text: 'Failing' } : { kind: 'serving', text: 'Serving' };
  if (safe_to_stop === true) return { kind: 'safe', text: 'Safe to stop' };
  if (inflight === 0) return { kind: 'unsure', text: 'Drained, not confirmed' };
  return { kind: 'draining', text: `Draining, ${counted(inflight, 'request')} left` };
}

/**
 * How long the replica has been in this state, and why; empty for a serving one.
 * @param {Replica} replica
 * @param {string} time now
 */
export function toSince({ since, reason, drained, health, health_since }, time) {
  /** @param {string} then */
  const ago = (then) => formatAgo(Date.parse(time) - Date.parse(then));
  if (!drained)
    return health === 'failing' && health_since !== null ? `for ${ago(health_since)}: tried last` : '';
  if (since === null) return '';
  return reason === null ? `${ago(since)} ago` : `${ago(since)} ago: ${reason}`;
}

/**
 * The gateways that have not confirmed a drain. Until they have, it is unknown whether the replica is safe to stop.
 * Empty if all have. @param {Replica} replica
 */
export function toUnconfirmed({ drained, removing, safe_to_stop, unconfirmed = [] }) {
  if (!drained || removing) return '';
  const names = unconfirmed.join(', ');
  if (safe_to_stop !== null) return names === '' ? '' : `not confirmed yet by ${names}`;
  if (names === '') return 'unknown until all have confirmed';
  return `unknown until ${names} ${unconfirmed.length === 1 ? 'has' : 'have'} confirmed`;
}

/**
 * Requests in flight and their limit. In a fleet the limit is left out: it is per gateway, and the count is a sum.
 * @param {Replica} replica
 */
export function toInflight({ inflight, max_inflight, unconfirmed }) {
  return max_inflight === null || unconfirmed !== undefined
    ? formatCount(inflight)
    : `${formatCount(inflight)} of ${formatCount(max_inflight)}`;
}

/**
 * How many replicas are serving, failing, drained and being removed.
 * @param {readonly Replica[]} replicas
 */
export function toSummary(replicas) {
  if (replicas.length === 0)
    return 'none yet: check the configuration, or wait until the host names are resolved';
  const present = replicas.filter((replica) => !replica.removing);
  const removing = replicas.length - present.length;
  const drained = present.filter((replica) => replica.drained).length;
  const failing = present.filter((replica) => !replica.drained && replica.health === 'failing').length;
  return [
    `${present.length - drained - failing} serving`,
    ...(failing === 0 ? [] : [`${failing} failing`]),
    ...(drained === 0 ? [] : [`${drained} drained`]),
    ...(removing === 0 ? [] : [`${removing} being removed`]),
  ].join(', ');
}
