/*
 * The side of the clients: the listener, with or without TLS, its connections, and one exchange at a time on each.
 *
 * It never knows what a request is for.
 * Begin with client-connection.ts; http-exchange.ts is what a handler gets.
 */

export type { ClientConnectionSettings } from './client-connection-context.ts';
export { type ExchangeEnd, type HttpExchange, isBodiless, type OutgoingHead } from './http-exchange.ts';
export { HttpServer } from './http-server.ts';
export { BegunHandshakes } from './plain-http.ts';
export type { RequestBodySink } from './request-body.ts';
export { CertificateChoice, checkTlsMaterial, type TlsMaterial, toContextOptions } from './tls-acceptor.ts';
