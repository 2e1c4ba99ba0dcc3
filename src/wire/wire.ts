/*
 * What both directions of HTTP/1.1 on sockets stand on: the one clock of all time-outs, bytes that nobody has read
 * yet, and how errors and foreign text are shown. Three rooms are in it: message/ has the syntax of RFC 9112, client/
 * the listener with its connections, upstream/ the connections to replicas.
 *
 * It never knows records, replicas or configuration, nor do its rooms.
 * Begin with client/client-connection.ts and upstream/upstream-connection.ts.
 */

export { DeadlineClock, type Timed, toTickMs } from './deadline-clock.ts';
export { type ErrorFacts, toErrorJson } from './error-body.ts';
export { toShownText } from './shown-text.ts';
export { UnreadBytes } from './unread-bytes.ts';
