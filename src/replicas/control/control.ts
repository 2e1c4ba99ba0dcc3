/*
 * The control plane of the replicas, put together: registry, discovery, drains, probes and the judges of health.
 *
 * It never knows a request or a record.
 * Begin with replica-control.ts; trials.ts makes a replica a shadow for a while, and ends that.
 */

export { createReplicaControl, type ReplicaControl } from './replica-control.ts';
export { createStoredResponsesFile, type StoredResponsesFile } from './stored-responses-file.ts';
