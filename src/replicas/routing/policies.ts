import type { CandidateSet, Candidates } from './candidate-set.ts';
import { leastInflight } from './least-inflight.ts';
import { ownerOfPrefix } from './prefix-affinity.ts';
import { roundRobin } from './round-robin.ts';

/**
 * Chooses the candidate for a request: its index, or null if no member of the set is open.
 *
 * @param start the index after the last choice; may be beyond the last candidate
 * @param prefixKey stands for the beginning of the request's text: see `PrefixPopularity`
 */
export type RoutingPolicy = (
  set: CandidateSet,
  start: number,
  candidates: Candidates,
  prefixKey: number | null,
) => number | null;

/** The values of `routing.policy`. A request without a prefix key goes where the fewest requests are in flight. */
export const POLICIES = {
  round_robin: roundRobin,
  least_inflight: leastInflight,
  prefix_affinity: (set, start, candidates, prefixKey) =>
    prefixKey === null
      ? leastInflight(set, start, candidates)
      : ownerOfPrefix(prefixKey, set, start, candidates),
} as const satisfies Record<string, RoutingPolicy>;
