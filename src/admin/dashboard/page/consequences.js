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
  const others = replicas.filter(({ name, drained }) => name !== replica.name && !drained);
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
  return models.map((model) => {
    const left = others.filter((other) => serves(other, model)).map((other) => other.name);
    const what = model === '*' ? 'any model' : `model ${model}`;
    return left.length === 0
      ? { isGrave: true, text: `${name} is the last replica of ${what}: its requests will get 503.` }
      : { isGrave: false, text: `New requests for ${what} go to ${left.join(', ')}.` };
  });
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
