/*
 * The control plane of the replicas: which there are, which are drained, which answer, which fail.
 *
 * It never knows a request or a record.
 * Begin with replica-control.ts, which puts the parts together: registry/ has the list, discovery/ its sources,
 * drains/ the drains and their file, health/ the judges.
 */

export { checkReplicas } from './checks/check-replicas.ts';
export type { ListedPodUids } from './discovery/kubernetes/list-pod-uids.ts';
export { createResolver, type Endpoint, type Resolver } from './discovery/resolver.ts';
export {
  type ReadinessGateState,
  SOURCE_KINDS,
  SOURCE_STATES,
  type SourceState,
} from './discovery/source-state.ts';
export { Drains } from './drains/drains.ts';
export { KEPT_GONE_MS, LOOK_FOR_GONE_MS, logForgotten } from './drains/forget-gone.ts';
export type { EngineProbe } from './engine-probe.ts';
export { AUTO_BOUND, FrozenWatch, type SilenceBound } from './health/frozen-watch.ts';
export { type ProbeTarget, probe } from './probe.ts';
export { BackgroundCounts, type BackgroundServer, serverKeyOf } from './registry/background-counts.ts';
export type { RegisteredReplica } from './registry/registered-replica.ts';
export { type ReplicaChanges, ReplicaRegistry, TooManyReplicasError } from './registry/registry.ts';
export { createReplicaControl, type ReplicaControl } from './replica-control.ts';
export { createStoredResponsesFile, type StoredResponsesFile } from './stored-responses-file.ts';
