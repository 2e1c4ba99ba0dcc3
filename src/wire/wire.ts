/*
 * HTTP/1.1 on sockets: the listener with its client connections, the connections to replicas, the syntax of RFC
 * 9112 and the one clock of all time-outs.
 *
 * It never knows records, replicas or configuration.
 * Begin with client/client-connection.ts and upstream/upstream-connection.ts; message/ has the syntax.
 */

export type { ClientConnectionSettings } from './client/client-connection-context.ts';
export {
  type ExchangeEnd,
  type HttpExchange,
  isBodiless,
  type OutgoingHead,
} from './client/http-exchange.ts';
export { HttpServer } from './client/http-server.ts';
export { BegunHandshakes } from './client/plain-http.ts';
export type { RequestBodySink } from './client/request-body.ts';
export {
  CertificateChoice,
  checkTlsMaterial,
  type TlsMaterial,
  toContextOptions,
} from './client/tls-acceptor.ts';
export { DeadlineClock, toTickMs } from './deadline-clock.ts';
export { toErrorJson } from './error-body.ts';
export { Fields } from './message/fields.ts';
export type { Framing, RequestHead, ResponseHead } from './message/head.ts';
export { allocateLimit, clearLimit, type LimitMemory, readLimit, SharedLimit } from './shared-limit.ts';
export { toShownText } from './shown-text.ts';
export { copyToKeep, SharedReads } from './upstream/shared-reads.ts';
export type { UpstreamConnection } from './upstream/upstream-connection.ts';
export { type Connector, UpstreamConnections } from './upstream/upstream-connections.ts';
export type { ResponseHandler, UpstreamFault } from './upstream/upstream-request.ts';
export { sizeOf } from './write-message.ts';
