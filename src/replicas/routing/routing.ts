/*
 * Balancing policies: which candidate takes a request, and why there is none.
 *
 * It never knows a clock, random numbers or a replica: policies are pure functions of numbers.
 * Begin with policies.ts.
 */

export { CandidateSet, type Candidates } from './candidate-set.ts';
export { POLICIES, type RoutingPolicy } from './policies.ts';
export { PrefixPopularity } from './prefix-popularity.ts';
export { roundRobin } from './round-robin.ts';
export { decideWhyNone } from './why-none.ts';
