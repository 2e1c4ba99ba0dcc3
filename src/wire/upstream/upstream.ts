/*
 * The side of the replicas: connections that are kept and used again, and the responses that come on them.
 *
 * It never knows which replica a connection leads to, nor why a request is sent there.
 * Begin with upstream-connection.ts; upstream-connections.ts keeps the idle ones.
 */

export { copyToKeep, SharedReads } from './shared-reads.ts';
export type { UpstreamConnection } from './upstream-connection.ts';
export { type Connector, UpstreamConnections } from './upstream-connections.ts';
export type { ResponseHandler, UpstreamFault } from './upstream-request.ts';
