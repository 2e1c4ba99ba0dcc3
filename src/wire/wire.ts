/*
 * What both directions of HTTP/1.1 on sockets stand on: the one clock of all time-outs, bytes that nobody has read
 * yet, and how errors and foreign text are shown. Three rooms are in it: message/ has the syntax of RFC 9112, client/
 * the listener with its connections, upstream/ the connections to replicas.
 *
 * It never knows records, replicas or configuration, nor do its rooms.
 * Begin with client/client-connection.ts and upstream/upstream-connection.ts.
 */

export { DeadlineClock, type Timed, toTickMs } from './deadline-clock.ts';
export { UnreadBytes } from './unread-bytes.ts';

/** The longest text of a request that an answer repeats. */
const MAX_SHOWN_CHARS = 128;
/** What has no place in a line of text, or changes how others are shown: controls, format characters, half surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A path or name from a request, in quotes, as an answer may repeat it: a line of printable characters, cut if it is long. */
export function toShownText(text: string): string {
  const begin = text.slice(0, MAX_SHOWN_CHARS).replace(UNPRINTABLE, '\u{FFFD}').replaceAll('`', "'");
  return `\`${begin}${text.length > MAX_SHOWN_CHARS ? '…' : ''}\``;
}

/** The content of an error response, in the shape of the OpenAI API that client libraries understand. */
export interface ErrorFacts {
  readonly status: number;
  /** Default: `invalid_request_error` for 4xx and `server_error` for 5xx. */
  readonly type?: string;
  readonly code: string;
  /** It never names a replica's address. What it repeats of the request went through `toShownText`. */
  readonly message: string;
  readonly param?: string | undefined;
}

/** The JSON text `{"error":{"message","type","param","code"}}`. */
export function toErrorJson({ status, code, message, param, ...given }: ErrorFacts): string {
  const { type = status < 500 ? 'invalid_request_error' : 'server_error' } = given;
  return JSON.stringify({ error: { message, type, param: param ?? null, code } });
}
