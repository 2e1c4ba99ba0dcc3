/** Why a replica was chosen for a request. docs/routing.md explains each. */
export type RouteReason =
  | 'turn'
  | 'least_in_flight'
  | 'prefix'
  | 'prefix_next'
  | 'response_home'
  | 'only_candidate'
  | 'next_after_failure'
  | 'ramp'
  | 'retry_of_failing'
  | 'none_healthy';

/** Why a replica that serves the model was no candidate of a request. */
export type Exclusion = 'drained' | 'unreachable' | 'failing' | 'at_limit' | 'ramping' | 'tried';

/** How a replica was chosen. */
export interface Route {
  readonly reason: RouteReason;
  /** From how many replicas it was chosen, itself included. */
  readonly candidates: number;
  /** How many others were no candidates, by the first reason that holds; null: none. */
  readonly ruledOut: Exclusions | null;
}

/** Counts of replicas by what ruled them out; only those above 0. */
export type Exclusions = Readonly<Partial<Record<Exclusion, number>>>;

/** What the reason depends on, beside the policy. */
export interface RouteFacts {
  /** Whether replicas have failed this request. */
  readonly hasFailed: boolean;
  /** Whether the replica fails: `retry`: this request finds out whether it still does; `last`: no other can be tried. */
  readonly failing: 'no' | 'retry' | 'last';
  readonly candidates: number;
  /** Whether the replica is on a ramp. */
  readonly isRamping: boolean;
}

/** Decides why a replica was chosen. `byPolicy`: the policy's own reason. */
export function decideRouteReason(facts: RouteFacts, byPolicy: RouteReason): RouteReason {
  if (facts.hasFailed) return 'next_after_failure';
  if (facts.failing === 'retry') return 'retry_of_failing';
  if (facts.failing === 'last') return 'none_healthy';
  if (facts.candidates === 1) return 'only_candidate';
  return facts.isRamping ? 'ramp' : byPolicy;
}

/** Counts what ruled replicas out: one item for each replica, null for a candidate. */
export function countExclusions(
  exclusions: Iterable<Exclusion | null>,
): Pick<Route, 'candidates' | 'ruledOut'> {
  let candidates = 0;
  let ruledOut: Partial<Record<Exclusion, number>> | null = null;
  for (const exclusion of exclusions) {
    if (exclusion === null) candidates++;
    else {
      ruledOut ??= {};
      ruledOut[exclusion] = (ruledOut[exclusion] ?? 0) + 1;
    }
  }
  return { candidates, ruledOut };
}
