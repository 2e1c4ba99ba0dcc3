/*
 * Which replicas are candidates for a model, which of them takes a request (balancing policies), and why there is none.
 *
 * It never knows a clock, random numbers or a replica: policies are pure functions of numbers.
 * Begin with policies.ts; decideWhyNone below says with which error a request ends for which there is no replica.
 */

export { CandidateSet, type Candidates } from './candidate-set.ts';
export { POLICIES, type RoutingPolicy } from './policies.ts';
export { PrefixPopularity } from './prefix-popularity.ts';
export {
  cursorNameOf,
  groupByModel,
  listModels,
  type ModelServer,
  onlyModelOf,
} from './replicas-by-model.ts';
export { roundRobin } from './round-robin.ts';

/** What the reason depends on. No candidate is left: each is drained or was tried for this request. */
interface NoneLeft {
  readonly candidateCount: number;
  readonly triedCount: number;
  /** Whether the names of all services are resolved, so that no unknown replica may serve the model. */
  readonly isComplete: boolean;
  /** Whether a replica is known to list its models. */
  readonly isAnyListKnown: boolean;
  /** Whether a candidate is known to serve the model, or has ever answered, so that it may serve it. */
  readonly mayBeServed: boolean;
}

/** Decides why there is no replica for a request. */
export function decideWhyNone({
  candidateCount,
  triedCount,
  isComplete,
  isAnyListKnown,
  mayBeServed,
}: NoneLeft): 'model_not_found' | 'all_replicas_drained' | 'no_replica_reachable' {
  // Replicas behind a name that is not resolved yet may serve the model.
  if (candidateCount === 0) return isComplete ? 'model_not_found' : 'no_replica_reachable';
  if (triedCount === 0) return 'all_replicas_drained';
  // A mistyped name is no failure of a replica that was only tried because it never said what it serves.
  return isComplete && isAnyListKnown && !mayBeServed ? 'model_not_found' : 'no_replica_reachable';
}
