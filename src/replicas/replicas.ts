/*
 * The data plane of the replicas: the pool of one thread, with its leases, turns, waiting requests and
 * connections.
 *
 * It never knows which replicas there should be: the control plane tells it by snapshots and shared memory.
 * Begin with data/pool.ts; data/lease.ts is what a request holds, data/replica.ts what is learned from a replica's answers.
 */

export { type ConnectionTimeouts, createProbeConnections, pathPrefixOf } from './data/connections.ts';
export { Lease, type NoLease } from './data/lease.ts';
export { type KnownResponse, type PoolSettings, ReplicaPool } from './data/pool.ts';
export { Fingerprint, type Replica } from './data/replica.ts';
export type { Wait, WaitResult } from './data/wait-queue.ts';
