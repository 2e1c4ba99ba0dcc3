/** @import { Overview } from '../../overview.ts' */
import { counted, formatAgo, formatCount } from '../elements/format.js';

/** @typedef {Overview['replicas'][number]} Replica */
/** @typedef {'unreachable' | 'failing' | 'loading' | 'unknown' | 'draining' | 'drained' | 'serving' | 'shadow'} StateKind */
/** @typedef {{ readonly kind: StateKind, readonly word: string, readonly detail: string }} State */

/** The states, the most urgent first, with the words that all of the product uses for them. */
/** @type {ReadonlyMap<StateKind, string>} */
const WORDS = new Map([
  ['unreachable', 'Unreachable'],
  ['failing', 'Failing'],
  ['loading', 'Loading'],
  ['unknown', 'Not seen yet'],
  ['draining', 'Draining'],
  ['drained', 'Drained'],
  ['serving', 'Serving'],
  ['shadow', 'Shadow'],
]);

/** The states in the order of their urgency. */
const KINDS = [...WORDS.keys()];

/** @type {Readonly<Record<NonNullable<Replica['reachability_reason']>, string>>} */
const REASONS = {
  connection_refused: 'connection refused',
  name_not_resolved: 'name does not resolve',
  connect_timeout: 'connect timeout',
  tls_failed: 'TLS failed',
  no_answer: 'no answer in time',
  connection_reset: 'connection reset',
  not_http: 'not HTTP',
  not_an_engine: 'not an inference server',
  engine_failed: 'engine failed',
  loading_model: 'loading its model',
};

/** @type {Readonly<Record<Replica['health_reasons'][number], string>>} */
const HEALTH_REASONS = {
  connections: 'cannot be connected to',
  probes: 'probes fail',
  frozen: 'frozen',
  errors: 'fails more than its peers',
  slow: 'slower than its peers',
};

/**
 * The state of a replica.
 * @param {Replica} replica
 * @returns {StateKind}
 */
export function toStateKind({ drained, removing, inflight, background, health, reachability, shadow }) {
  if (removing) return 'draining';
  if (drained) return inflight + background > 0 ? 'draining' : 'drained';
  if (reachability === 'unreachable' || reachability === 'loading') return reachability;
  if (health === 'failing') return 'failing';
  if (reachability === 'unknown') return 'unknown';
  return shadow === null ? 'serving' : 'shadow';
}

/**
 * The state of a replica, with its reason and its duration.
 * @param {Replica} replica
 * @param {string} time now, RFC 3339
 * @returns {State}
 */
export function toState(replica, time) {
  const kind = toStateKind(replica);
  const { count, running, oldest_ms } = replica.silent_streams;
  // As short as the column.
  const silent =
    count === 0
      ? []
      : [`${formatCount(count)} of ${counted(running, 'stream')} silent`, formatAgo(oldest_ms ?? 0)];
  const detail = joined([toDetail(replica, kind, time), ...silent]);
  return { kind, word: toWord(kind), detail };
}

/**
 * The word for a state.
 * @param {StateKind} kind
 */
export function toWord(kind) {
  return WORDS.get(kind) ?? kind;
}

/**
 * The place of a state in the order of urgency; 0 is the most urgent.
 * @param {StateKind} kind
 */
export function toUrgency(kind) {
  return KINDS.indexOf(kind);
}

/**
 * Why the replica is unreachable, loading or failing, in words; empty if that is not known.
 * @param {Replica} replica
 */
export function toReason(replica) {
  if (toStateKind(replica) === 'failing')
    return replica.health_reasons.map((judge) => HEALTH_REASONS[judge]).join(', ');
  return replica.reachability_reason === null ? '' : REASONS[replica.reachability_reason];
}

/**
 * @param {Replica} replica
 * @param {StateKind} kind
 * @param {string} time
 */
function toDetail(replica, kind, time) {
  /** @param {string | null} since */
  const ago = (since) => (since === null ? '' : formatAgo(Date.parse(time) - Date.parse(since)));
  switch (kind) {
    case 'unreachable':
      return joined([toReason(replica), ago(replica.reachability_since)]);
    case 'loading':
      return ago(replica.reachability_since);
    case 'failing':
      return joined([toReason(replica), ago(replica.health_since)]);
    case 'draining':
      return joined([
        ...(replica.removing ? ['being removed'] : []),
        `${counted(replica.inflight, 'request')} left`,
        toBackground(replica),
        ...(replica.removing ? [] : [toUnconfirmed(replica), replica.reason ?? '', toTrial(replica)]),
      ]);
    case 'drained':
      return joined([
        replica.safe_to_stop === true ? 'Safe to stop' : toUnconfirmed(replica),
        ago(replica.since),
        replica.reason ?? '',
        toTrial(replica),
      ]);
    case 'shadow':
      return joined([toTrial(replica), ago(replica.shadow?.since ?? null)]);
    default:
      return replica.ramp === null ? '' : `Ramp: ${Math.round(replica.ramp.share * 100)} % of its turns`;
  }
}

/**
 * How many of its streams are silent, and for how long the oldest is; empty if none is.
 * @param {Replica} replica
 */
export function toSilentStreams({ silent_streams: { count, running, oldest_ms } }) {
  if (count === 0) return '';
  return `${formatCount(count)} of ${counted(running, 'stream')} silent, for up to ${formatAgo(oldest_ms ?? 0)}`;
}

/**
 * The responses that the replica goes on with in the background; empty if there are none.
 * @param {Replica} replica
 */
function toBackground({ background, background_unknown }) {
  if (background === 0) return '';
  const text = `${formatCount(background)} in the background`;
  return background_unknown === 0 ? text : `${text} (not known of ${formatCount(background_unknown)})`;
}

/**
 * What a replica gets copies of that is a shadow for a while; empty if it is none, or always one.
 * @param {Replica} replica
 */
function toTrial({ shadow }) {
  if (shadow === null || shadow.requests === null) return '';
  return `copies of ${Math.round(shadow.requests * 100)} % of requests`;
}

/** @param {readonly string[]} parts */
function joined(parts) {
  return parts.filter((part) => part !== '').join(' · ');
}

/**
 * The gateways that have not confirmed a drain. Until they have, it is unknown whether the replica is safe to stop.
 * Empty if all have.
 * @param {Replica} replica
 */
function toUnconfirmed({ safe_to_stop, unconfirmed = [] }) {
  const names = unconfirmed.join(', ');
  if (safe_to_stop !== null) return names === '' ? '' : `not confirmed yet by ${names}`;
  if (names === '') return 'unknown until all have confirmed';
  return `unknown until ${names} ${unconfirmed.length === 1 ? 'has' : 'have'} confirmed`;
}

/**
 * Requests in flight and their limit, and what goes on in the background. In a fleet the limit is left out: it is per gateway, and the count is a sum.
 * @param {Replica} replica
 */
export function toInflight({ inflight, background, max_inflight, unconfirmed }) {
  const text =
    max_inflight === null || unconfirmed !== undefined
      ? formatCount(inflight)
      : `${formatCount(inflight)} of ${formatCount(max_inflight)}`;
  return background === 0 ? text : `${text} + ${formatCount(background)} in the background`;
}

/**
 * How many replicas are in each state that occurs, the most urgent first.
 * @param {readonly Replica[]} replicas
 * @returns {readonly { readonly kind: StateKind, readonly count: number }[]}
 */
export function countStates(replicas) {
  /** @type {Map<StateKind, number>} */
  const counts = new Map();
  for (const replica of replicas) {
    const kind = toStateKind(replica);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return KINDS.flatMap((kind) => {
    const count = counts.get(kind);
    return count === undefined ? [] : [{ kind, count }];
  });
}

/**
 * How many replicas are in each state, in words.
 * @param {readonly Replica[]} replicas
 */
export function toSummary(replicas) {
  if (replicas.length === 0)
    return 'none yet: check the configuration, or wait until the host names are resolved';
  return countStates(replicas)
    .map(({ kind, count }) => `${formatCount(count)} ${toWord(kind).toLowerCase()}`)
    .join(', ');
}
