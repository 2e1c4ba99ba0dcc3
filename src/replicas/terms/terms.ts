/*
 * The words that both planes, the admin API and the CLI have for replicas: reachability with its reasons, the
 * judges of health, how many responses go on in the background, the snapshot of a pool.
 *
 * It never knows how anything is found out.
 * Begin with reachability.ts.
 */

export { addBackground, type BackgroundCount, NO_BACKGROUND } from './background-count.ts';
export {
  HEALTH_JUDGES,
  HEALTH_TEXTS,
  type HealthDecision,
  type HealthJudge,
  type HealthVerdict,
} from './health-decision.ts';
export type { PoolSnapshot, ReplicaKnowledge, ReplicaSnapshot } from './pool-snapshot.ts';
export {
  codeOf,
  type Finding,
  isHealthy,
  NOT_SEEN,
  REACHABILITIES,
  REACHABILITY_REASONS,
  REASON_TEXTS,
  type Reachability,
  type ReachabilityReason,
  type ReachabilityState,
  toConnectionReason,
  toHealthFinding,
  toListFinding,
  toReachability,
} from './reachability.ts';
export type { Engine, ReplicaConfig } from './replica-config.ts';
export {
  cursorNameOf,
  groupByModel,
  listModels,
  type ModelServer,
  onlyModelOf,
} from './replicas-by-model.ts';
export type { ResponseReader } from './response-reader.ts';
