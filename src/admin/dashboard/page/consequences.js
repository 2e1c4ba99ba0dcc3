/** @import { Overview } from '../overview.ts' */
import { counted } from './format.js';

/** @typedef {Overview['replicas'][number]} Replica */
/** What a drain or an undrain came to: how far it has spread in a fleet, and what to know although it succeeded. */
/** @typedef {{ scope?: 'fleet' | 'local', unconfirmed?: readonly string[], warning?: string }} DrainAnswer */
/** @typedef {{ readonly isGrave: boolean, readonly text: string }} Consequence */

/**
 * What a drain or an undrain of this replica means for requests, the gravest first.
 * @param {'drain' | 'undrain'} action
 * @param {Replica} replica
 * @param {readonly Replica[]} replicas all of them
 * @returns {readonly Consequence[]}
 */
export function toConsequences(action, replica, replicas) {
  if (action === 'undrain') {
    // In a fleet nobody sends to it before everybody has heard of it.
    const when = replica.unconfirmed === undefined ? 'at once' : 'within seconds, from all gateways';
    return [{ isGrave: false, text: `${replica.name} takes its turns again ${when}: it should be ready.` }];
  }
  const others = replicas.filter(
    ({ name, drained, removing }) => name !== replica.name && !drained && !removing,
  );
  const consequences = [...toModelConsequences(replica, others), toInflightConsequence(replica)];
  return consequences.toSorted((a, b) => Number(b.isGrave) - Number(a.isGrave));
}

/**
 * @param {Replica} replica
 * @param {readonly Replica[]} others those that may serve in its place
 * @returns {readonly Consequence[]}
 */
function toModelConsequences({ name, models }, others) {
  if (models === null) {
    return others.length === 0
      ? [
          {
            isGrave: true,
            text: `${name} is the last replica that is not drained: all requests will get 503.`,
          },
        ]
      : [{ isGrave: false, text: `The models of ${name} are not known yet.` }];
  }
  /** @type {Map<string, { readonly left: readonly Replica[], readonly models: string[] }>} */
  const byTheirOthers = new Map();
  for (const model of models) {
    const left = others.filter((other) => serves(other, model));
    const key = left.map((other) => other.name).join(', ');
    const group = byTheirOthers.get(key) ?? { left, models: [] };
    group.models.push(model);
    byTheirOthers.set(key, group);
  }
  return [...byTheirOthers.values()].map(({ left, models }) =>
    left.length === 0
      ? {
          isGrave: true,
          text: `${name} is the last replica of ${toText(models)}: such requests will get 503.`,
        }
      : {
          isGrave: left.every(isFailing),
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
  // Ollama takes a name without a tag for its `latest`.
  if (engine === 'ollama') names.push(`${model}:latest`, model.replace(/:latest$/, ''));
  return names.some((name) => models?.includes(name));
}

/**
 * @param {Replica} replica
 * @returns {Consequence}
 */
function toInflightConsequence({ inflight }) {
  return {
    isGrave: false,
    text:
      inflight === 0
        ? 'Nothing is in flight there now.'
        : `${counted(inflight, 'request')} in flight there will finish; then it is safe to stop.`,
  };
}

/**
 * What was reached when the gateway had answered a drain or an undrain.
 * @param {'drain' | 'undrain'} action
 * @param {string} name
 * @param {DrainAnswer} answer
 */
export function toDone(action, name, { scope, unconfirmed = [] }) {
  const isOnlyHere = scope === 'local' || unconfirmed.length > 0;
  if (action === 'undrain')
    return isOnlyHere
      ? `${name} takes its turns again as the gateways hear of it.`
      : `${name} takes its turns again.`;
  return isOnlyHere ? `${name} gets no new requests from this gateway.` : `${name} gets no new requests.`;
}
