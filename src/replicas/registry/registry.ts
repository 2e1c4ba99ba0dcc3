/*
 * Which replicas there are now, each with its row in shared memory, and what goes on in the background at their servers.
 *
 * It never knows where the list comes from, nor who balances over it.
 * Begin with replica-registry.ts, which also decides when a name stands for another server.
 */

export { BackgroundCounts, type BackgroundServer, serverKeyOf } from './background-counts.ts';
export { findLastServer } from './find-last-server.ts';
export type { RegisteredReplica, ShadowTrial } from './registered-replica.ts';
export { type ReplicaChanges, ReplicaRegistry, TooManyReplicasError } from './replica-registry.ts';
