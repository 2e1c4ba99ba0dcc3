import type { CandidateSet, Candidates } from './candidate-set.ts';
import { leastInflight } from './least-inflight.ts';
import { ownerOfPrefix } from './prefix-affinity.ts';
import { roundRobin } from './round-robin.ts';

/**
 * Finds the place of the candidate that a request goes to; null if none in the circle is open.
 *
 * @param turn the place whose turn it is, which may lie beyond the last one
 * @param prefixKey what the request is sent by where prefixes count: see `PrefixPopularity`
 */
export type RoutingPolicy = (
  circle: CandidateSet,
  turn: number,
  candidates: Candidates,
  prefixKey: number | null,
) => number | null;

/** The values of `routing.policy`. Without a prefix that tells anything, a request goes where the least is in flight. */
export const POLICIES = {
  round_robin: roundRobin,
  least_inflight: leastInflight,
  prefix_affinity: (circle, turn, candidates, prefixKey) =>
    prefixKey === null
      ? leastInflight(circle, turn, candidates)
      : ownerOfPrefix(prefixKey, circle, turn, candidates),
} as const satisfies Record<string, RoutingPolicy>;
