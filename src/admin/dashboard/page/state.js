/** @import { Replica } from './consequences.js' */
import { counted, formatAgo, formatCount } from './format.js';

/** @typedef {'serving' | 'failing' | 'draining' | 'unsure' | 'safe'} StateKind */

/**
 * How a replica stands, in few words.
 * @param {Replica} replica
 * @returns {{ readonly kind: StateKind, readonly text: string }}
 */
export function toState({ drained, health, removing, inflight, safe_to_stop }) {
  if (removing) return { kind: 'draining', text: `Leaving, ${counted(inflight, 'request')} left` };
  if (!drained)
    return health === 'failing' ? { kind: 'failing', text: 'Failing' } : { kind: 'serving', text: 'Serving' };
  if (safe_to_stop === true) return { kind: 'safe', text: 'Safe to stop' };
  if (inflight === 0) return { kind: 'unsure', text: 'Drained, not confirmed' };
  return { kind: 'draining', text: `Draining, ${counted(inflight, 'request')} left` };
}

/**
 * Since when it stands so, and why; empty where nothing is to be said.
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
 * Who has not confirmed a drain: until then it is not known whether the replica is safe to stop. Empty if all have.
 * @param {Replica} replica
 */
export function toUnconfirmed({ drained, removing, safe_to_stop, unconfirmed = [] }) {
  if (!drained || removing) return '';
  const names = unconfirmed.join(', ');
  if (safe_to_stop !== null) return names === '' ? '' : `not confirmed yet by ${names}`;
  if (names === '') return 'unknown until all have confirmed';
  return `unknown until ${names} ${unconfirmed.length === 1 ? 'has' : 'have'} confirmed`;
}

/**
 * Requests in flight, of as many as may be. In a fleet each gateway has that limit for itself: it says nothing of the
 * sum shown.
 * @param {Replica} replica
 */
export function toInflight({ inflight, max_inflight, unconfirmed }) {
  return max_inflight === null || unconfirmed !== undefined
    ? formatCount(inflight)
    : `${formatCount(inflight)} of ${formatCount(max_inflight)}`;
}

/**
 * How many replicas serve, fail, are drained and are leaving.
 * @param {readonly Replica[]} replicas
 */
export function toSummary(replicas) {
  if (replicas.length === 0)
    return 'none is known: look at the configuration, or wait for the names to resolve';
  const present = replicas.filter((replica) => !replica.removing);
  const leaving = replicas.length - present.length;
  const drained = present.filter((replica) => replica.drained).length;
  const failing = present.filter((replica) => !replica.drained && replica.health === 'failing').length;
  return [
    `${present.length - drained - failing} serving`,
    ...(failing === 0 ? [] : [`${failing} failing`]),
    ...(drained === 0 ? [] : [`${drained} drained`]),
    ...(leaving === 0 ? [] : [`${leaving} leaving`]),
  ].join(', ');
}
