/*
 * Finds the replicas: those of the configuration, and those behind its names, in DNS and in Kubernetes; and asks each
 * what it serves. checks/ does the same once, for `gateway check`.
 *
 * It never knows a drain, a health decision or a request.
 * Begin with replica-discovery.ts; replica-prober.ts finds out whether each answers, and what. kubernetes/ is on its own.
 */

export { checkReplicas, type ReplicaCheck } from './checks/check-replicas.ts';
export type { ListedPodUids } from './kubernetes/list-pod-uids.ts';
export { type DiscoverySettings, ReplicaDiscovery } from './replica-discovery.ts';
export { createResolver, type Endpoint, type Resolver } from './resolver.ts';
export { SOURCE_KINDS, SOURCE_STATES, type SourceState } from './source-state.ts';
