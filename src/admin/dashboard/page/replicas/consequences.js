/** @import { Replica } from './state.js' */
import { counted, formatCount } from '../elements/format.js';
import { toSilentStreams, toStateKind, toWord } from './state.js';

/**
 * The response to a drain or an undrain: how far it has propagated in a fleet, and a warning.
 * @typedef {{
 *   replica?: { readonly shadow?: object | null },
 *   scope?: 'fleet' | 'local',
 *   overtaken?: boolean,
 *   unconfirmed?: readonly string[],
 *   warning?: string,
 * }} DrainResponse
 */
/** @typedef {{ readonly isSevere: boolean, readonly text: string }} Consequence */

/**
 * The consequences of a drain or an undrain for requests, the most severe first. A severe one needs a second step.
 * @param {'drain' | 'undrain'} action
 * @param {Replica} replica
 * @param {readonly Replica[]} replicas all replicas
 * @returns {readonly Consequence[]}
 */
export function toConsequences(action, replica, replicas) {
  if (action === 'undrain') {
    // In a fleet no gateway sends to it before all gateways know that it is undrained.
    const when = replica.unconfirmed === undefined ? 'at once' : 'within seconds, from all gateways';
    return [
      {
        isSevere: false,
        text: `${replica.name} gets new ${replica.shadow === null ? 'requests' : 'copies'} ${when}: make sure that it is ready.`,
      },
    ];
  }
  const others = replicas.filter(
    ({ name, drained, removing, shadow }) =>
      name !== replica.name && !drained && !removing && shadow === null,
  );
  const consequences = [
    ...(replica.shadow === null ? toModelConsequences(replica, others) : [toNoCopies(replica.shadow)]),
    toInflightConsequence(replica),
    ...toSilentConsequence(replica),
  ];
  return consequences.toSorted((a, b) => Number(b.isSevere) - Number(a.isSevere));
}

/**
 * @param {NonNullable<Replica['shadow']>} shadow
 * @returns {Consequence}
 */
function toNoCopies({ requests }) {
  const text =
    requests === null
      ? 'It is a shadow: no client waits for it. It gets no more copies.'
      : 'It is a shadow for a while. That ends, and with it the comparison: once undrained, it is what the configuration says.';
  return { isSevere: false, text };
}

/**
 * @param {Replica} replica
 * @param {readonly Replica[]} others the replicas that may serve in its place
 * @returns {readonly Consequence[]}
 */
function toModelConsequences(replica, others) {
  if (replica.models === null) return [toUnknownConsequence(replica, others)];
  /** @type {Map<string, { readonly left: readonly Replica[], readonly models: string[] }>} */
  const byOthers = new Map();
  for (const model of replica.models) {
    const left = others.filter((other) => serves(other, model));
    const key = left.map((other) => other.name).join('\n');
    const group = byOthers.get(key) ?? { left, models: [] };
    group.models.push(model);
    byOthers.set(key, group);
  }
  return [...byOthers.values()].map(({ left, models }) => toModelConsequence(replica, left, toText(models)));
}

/**
 * @param {Replica} replica
 * @param {readonly Replica[]} left the replicas that remain for these models
 * @param {string} models
 * @returns {Consequence}
 */
function toModelConsequence(replica, left, models) {
  if (left.length === 0)
    return {
      isSevere: true,
      text: `${replica.name} is the last replica for ${models}: these requests will get 503.`,
    };
  const able = left.filter(isAnswering);
  const silent = left.filter((other) => !isAnswering(other)).map(toNameAndState);
  if (able.length > 0) {
    const also = silent.length === 0 ? '' : ` Not to ${toText(silent)}.`;
    return {
      isSevere: able.every(isFailing),
      text: `New requests for ${models} go to ${toText(able.map(toNameAndState))}.${also}${toNoRoom(replica, able)}`,
    };
  }
  // One that has not been seen may answer: this is not known, so it is not promised.
  return isAnswering(replica)
    ? {
        isSevere: true,
        text: `${replica.name} is the last replica for ${models} that answers. What remains: ${toText(silent)}. These requests will fail.`,
      }
    : {
        isSevere: false,
        text: `No replica for ${models} answers, with or without this drain. What remains: ${toText(silent)}.`,
      };
}

/**
 * Says that what is in flight has no room on the replicas that remain. In a fleet, each gateway knows its own room alone.
 * @param {Replica} replica
 * @param {readonly Replica[]} able the replicas that remain, and answer
 */
function toNoRoom({ inflight, unconfirmed }, able) {
  const roomOf = (/** @type {Replica} */ other) =>
    other.max_inflight === null ? Infinity : Math.max(0, other.max_inflight - other.inflight);
  const room = able.reduce((sum, other) => sum + roomOf(other), 0);
  if (unconfirmed !== undefined || room >= inflight) return '';
  return ` There is room for ${room} of the ${counted(inflight, 'request')} in flight: requests may have to wait.`;
}

/**
 * @param {Replica} replica
 * @param {readonly Replica[]} others
 * @returns {Consequence}
 */
function toUnknownConsequence({ name }, others) {
  if (others.length === 0)
    return {
      isSevere: true,
      text: `${name} is the last replica that is not drained: all requests will get 503.`,
    };
  return others.some(isAnswering)
    ? { isSevere: false, text: `The models of ${name} are not known yet.` }
    : {
        isSevere: true,
        text: `The models of ${name} are not known yet, and no other replica answers: requests will fail.`,
      };
}

/** Whether the replica is known to answer, if only with failures. @param {Replica} replica */
function isAnswering({ reachability }) {
  return reachability === 'reachable';
}

/** @param {Replica} replica */
function isFailing({ health }) {
  return health === 'failing';
}

/** @param {Replica} replica */
function toNameAndState(replica) {
  const kind = toStateKind(replica);
  return kind === 'serving' ? replica.name : `${replica.name} (${toWord(kind).toLowerCase()})`;
}

const MAX_NAMED = 5;

/** @param {readonly string[]} names */
function toText(names) {
  const named = names.slice(0, MAX_NAMED).map((name) => (name === '*' ? 'any other model' : name));
  return names.length > MAX_NAMED
    ? `${named.join(', ')} and ${names.length - MAX_NAMED} more`
    : named.join(', ');
}

/**
 * Whether the replica serves the model.
 * @param {Replica} replica
 * @param {string} model
 */
function serves({ models, engine }, model) {
  const names = ['*', model];
  // Ollama resolves a name without a tag to its `latest`.
  if (engine === 'ollama') names.push(`${model}:latest`, model.replace(/:latest$/, ''));
  return names.some((name) => models?.includes(name));
}

/**
 * @param {Replica} replica
 * @returns {Consequence}
 */
function toInflightConsequence({ inflight, background, background_unknown }) {
  const work = [
    ...(inflight === 0 ? [] : [`${counted(inflight, 'request')} in flight`]),
    ...(background === 0 ? [] : [`${counted(background, 'response')} in the background`]),
  ].join(' and ');
  if (work === '') return { isSevere: false, text: 'It has no requests in flight.' };
  const text =
    background_unknown === 0
      ? `${work} will finish. Then it is safe to stop.`
      : `${work}. Whether it goes on with ${formatCount(background_unknown)} of them is not known: until it is, it is not safe to stop.`;
  return { isSevere: false, text };
}

/**
 * @param {Replica} replica
 * @returns {readonly Consequence[]}
 */
function toSilentConsequence(replica) {
  const silent = toSilentStreams(replica);
  if (silent === '') return [];
  return [{ isSevere: false, text: `${silent}: they may end only by a time-out.` }];
}

/**
 * The message after a successful drain or undrain.
 * @param {'drain' | 'undrain'} action
 * @param {string} name
 * @param {DrainResponse} response
 */
export function toDone(action, name, { replica, scope, overtaken, unconfirmed = [] }) {
  if (overtaken) return `The ${action} of ${name} did not last.`;
  const what = replica?.shadow == null ? 'requests' : 'copies';
  const isOnlyHere = scope === 'local' || unconfirmed.length > 0;
  if (action === 'undrain')
    return isOnlyHere
      ? `${name} gets new ${what} from each gateway as soon as it receives the undrain.`
      : `${name} gets new ${what} again.`;
  return isOnlyHere ? `${name} gets no new ${what} from this gateway.` : `${name} gets no new ${what}.`;
}
