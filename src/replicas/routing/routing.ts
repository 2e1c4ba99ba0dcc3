/*
 * Which replicas are candidates for a model, which of them takes a request (balancing policies), and why there is none.
 *
 * It never knows a clock, random numbers or a replica: policies are pure functions of numbers.
 * Begin with policies.ts.
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
export { decideWhyNone } from './why-none.ts';
