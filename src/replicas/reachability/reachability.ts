/*
 * Whether a replica answers, in the words that both planes, the admin API and the CLI have for it: the states, and the
 * reasons with their texts.
 *
 * It never knows how that is found out: by probes in replica-prober.ts of #replicas/discovery, and by requests.
 * Begin with reachability-state.ts.
 */

export {
  codeOf,
  type Finding,
  NOT_SEEN,
  REACHABILITIES,
  REACHABILITY_REASONS,
  REASON_TEXTS,
  type Reachability,
  type ReachabilityReason,
  type ReachabilityState,
  toConnectionReason,
  toReachability,
} from './reachability-state.ts';
