import { describe, expect, test } from 'vitest';
import { decideWhyNone } from '#replicas/routing';

/** Two candidates that never listed their models or answered, both tried; a third replica has listed its own. */
const NEVER_SEEN: Parameters<typeof decideWhyNone>[0] = {
  candidateCount: 2,
  triedCount: 2,
  isComplete: true,
  isAnyListKnown: true,
  mayBeServed: false,
};

describe('why there is no replica for a request', () => {
  test.each([
    ['no candidate', { candidateCount: 0, triedCount: 0 }, 'model_not_found'],
    [
      'no candidate, but a name that is not resolved',
      { candidateCount: 0, isComplete: false },
      'no_replica_reachable',
    ],
    ['candidates that are all drained', { triedCount: 0 }, 'all_replicas_drained'],
    ['candidates that never said what they serve', {}, 'model_not_found'],
    ['the same, and a name that is not resolved', { isComplete: false }, 'no_replica_reachable'],
    ['the same, and nobody else has listed models', { isAnyListKnown: false }, 'no_replica_reachable'],
    ['a candidate that may serve the model', { mayBeServed: true }, 'no_replica_reachable'],
    ['candidates of which some are drained', { triedCount: 1, mayBeServed: true }, 'no_replica_reachable'],
  ] as const)('%s', (_name, given, reason) => {
    expect(decideWhyNone({ ...NEVER_SEEN, ...given })).toBe(reason);
  });
});
