/** @import { Overview } from '../overview.ts' */
import { counted } from './format.js';

/** @typedef {Overview['replicas'][number]} Replica */
/** The response to a drain or an undrain: how far it has propagated in a fleet, and a warning. */
/** @typedef {{ scope?: 'fleet' | 'local', unconfirmed?: readonly string[], warning?: string }} DrainResponse */
/** @typedef {{ readonly isSevere: boolean, readonly text: string }} Consequence */

/**
 * The consequences of a drain or an undrain for requests, the most severe first.
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
      { isSevere: false, text: `${replica.name} gets new requests ${when}: make sure that it is ready.` },
    ];
  }
  const others = replicas.filter(
    ({ name, drained, removing }) => name !== replica.name && !drained && !removing,
  );
  const consequences = [...toModelConsequences(replica, others), toInflightConsequence(replica)];
  return consequences.toSorted((a, b) => Number(b.isSevere) - Number(a.isSevere));
}

/**
 * @param {Replica} replica
 * @param {readonly Replica[]} others the replicas that may serve in its place
 * @returns {readonly Consequence[]}
 */
function toModelConsequences({ name, models }, others) {
  if (models === null) {
    return others.length === 0
      ? [
          {
            isSevere: true,
            text: `${name} is the last replica that is not drained: all requests will get 503.`,
          },
        ]
      : [{ isSevere: false, text: `The models of ${name} are not known yet.` }];
  }
  /** @type {Map<string, { readonly left: readonly Replica[], readonly models: string[] }>} */
  const byOthers = new Map();
  for (const model of models) {
    const left = others.filter((other) => serves(other, model));
    const key = left.map((other) => other.name).join(', ');
    const group = byOthers.get(key) ?? { left, models: [] };
    group.models.push(model);
    byOthers.set(key, group);
  }
  return [...byOthers.values()].map(({ left, models }) =>
    left.length === 0
      ? {
          isSevere: true,
          text: `${name} is the last replica for ${toText(models)}: these requests will get 503.`,
        }
      : {
          isSevere: left.every(isFailing),
          text: `New requests for ${toText(models)} go to ${left.map(toName).join(', ')}.`,
        },
  );
}

/** @param {Replica} replica */
function isFailing({ health }) {
  return health === 'failing';
}

/** @param {Replica} replica */
function toName(replica) {
  return isFailing(replica) ? `${replica.name} (failing)` : replica.name;
}

const MAX_NAMED = 5;

/** @param {readonly string[]} models */
function toText(models) {
  const names = models.slice(0, MAX_NAMED).map((model) => (model === '*' ? 'any other model' : model));
  return models.length > MAX_NAMED
    ? `${names.join(', ')} and ${models.length - MAX_NAMED} more`
    : names.join(', ');
}

/**
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
function toInflightConsequence({ inflight }) {
  return {
    isSevere: false,
    text:
      inflight === 0
        ? 'It has no requests in flight.'
        : `${counted(inflight, 'request')} in flight will finish. Then it is safe to stop.`,
  };
}

/**
 * The message after a successful drain or undrain.
 * @param {'drain' | 'undrain'} action
 * @param {string} name
 * @param {DrainResponse} response
 */
export function toDone(action, name, { scope, unconfirmed = [] }) {
  const isOnlyHere = scope === 'local' || unconfirmed.length > 0;
  if (action === 'undrain')
    return isOnlyHere
      ? `${name} gets new requests from each gateway as soon as it receives the undrain.`
      : `${name} gets new requests again.`;
  return isOnlyHere ? `${name} gets no new requests from this gateway.` : `${name} gets no new requests.`;
}
