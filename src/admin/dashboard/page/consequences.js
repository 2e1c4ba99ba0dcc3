/** @import { Overview } from '../overview.ts' */
import { counted } from './format.js';

/** @typedef {Overview['replicas'][number]} Replica */
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
    return [{ isGrave: false, text: `${replica.name} takes its turns again at once: it should be ready.` }];
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
  /** @type {Map<string, string[]>} */
  const byTheirOthers = new Map();
  for (const model of models) {
    const left = others.filter((other) => serves(other, model)).map((other) => other.name);
    const group = byTheirOthers.get(left.join(', '));
    if (group === undefined) byTheirOthers.set(left.join(', '), [model]);
    else group.push(model);
  }
  return [...byTheirOthers].map(([left, group]) =>
    left === ''
      ? {
          isGrave: true,
          text: `${name} is the last replica of ${toText(group)}: such requests will get 503.`,
        }
      : { isGrave: false, text: `New requests for ${toText(group)} go to ${left}.` },
  );
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
function serves({ models }, model) {
  return models?.includes(model) === true || models?.includes('*') === true;
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
