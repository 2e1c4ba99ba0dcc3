import type { RouteReason } from '#replicas/route';
import type { CandidateSet, Candidates } from './candidate-set.ts';
import { leastInflight } from './least-inflight.ts';
import { ownerOfPrefix, ownsPrefix } from './prefix-affinity.ts';
import { roundRobin } from './round-robin.ts';

/** How the candidate for a request is chosen, and why it was that one. */
export interface RoutingPolicy {
  /**
   * Its index, or null if no member of the set is open.
   *
   * @param start the index after the last choice; may be beyond the last candidate
   * @param prefixKey stands for the beginning of the request's text: see `PrefixPopularity`
   */
  choose(set: CandidateSet, start: number, candidates: Candidates, prefixKey: number | null): number | null;
  /** Why this member was chosen. Asked afterwards, so that a choice is no more than an index. */
  reasonOf(
    set: CandidateSet,
    chosen: number,
    candidates: Pick<Candidates, 'seedAt'>,
    prefixKey: number | null,
  ): RouteReason;
}

/** The values of `routing.policy`. A request without a prefix key goes where the fewest requests are in flight. */
export const POLICIES = {
  round_robin: { choose: roundRobin, reasonOf: () => 'turn' },
  least_inflight: { choose: leastInflight, reasonOf: () => 'least_in_flight' },
  prefix_affinity: {
    choose: (set, start, candidates, prefixKey) =>
      prefixKey === null
        ? leastInflight(set, start, candidates)
        : ownerOfPrefix(prefixKey, set, start, candidates),
    reasonOf: (set, chosen, candidates, prefixKey) => {
      if (prefixKey === null) return 'least_in_flight';
      return ownsPrefix(prefixKey, set, chosen, candidates) ? 'prefix' : 'prefix_next';
    },
  },
} as const satisfies Record<string, RoutingPolicy>;
