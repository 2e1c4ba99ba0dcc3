import type { IncomingMessage } from 'node:http';

/** Connection-specific fields that no proxy forwards (RFC 9110 7.6.1). */
const HOP_BY_HOP = ['connection', 'proxy-connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade'];

/** What the gateway sets itself upstream, or keeps from replicas. */
const NOT_SENT_UPSTREAM = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  'content-length',
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'tracestate',
  'baggage',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
]);

const NOT_SENT_TO_CLIENT = new Set([...HOP_BY_HOP, 'x-request-id']);

const NOTHING: ReadonlySet<string> = new Set();

/** What the gateway adds to a request on its way upstream. */
export interface UpstreamIdentity {
  readonly requestId: string;
  readonly traceparent: string;
  /** Sent instead of the client's Authorization when the replica has a key of its own. */
  readonly apiKey: string | undefined;
}

/**
 * Converts a client's header fields to those for the replica: a flat name, value list in the client's
 * order and spelling. `Host` and `Content-Length` are left to the connection.
 */
export function toUpstreamHeaders(request: IncomingMessage, identity: UpstreamIdentity): string[] {
  const { rawHeaders } = request;
  const named = namesIn(request.headers.connection);
  const result: string[] = [];
  const forwardedFor: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const lower = name.toLowerCase();
    if (lower === 'x-forwarded-for') forwardedFor.push(value);
    if (NOT_SENT_UPSTREAM.has(lower) || named.has(lower)) continue;
    if (lower === 'authorization' && identity.apiKey !== undefined) continue;
    result.push(name, value);
  }
  if (identity.apiKey !== undefined) result.push('Authorization', `Bearer ${identity.apiKey}`);
  const { remoteAddress } = request.socket;
  if (remoteAddress !== undefined) forwardedFor.push(remoteAddress);
  if (forwardedFor.length > 0) result.push('X-Forwarded-For', forwardedFor.join(', '));
  result.push('X-Forwarded-Proto', 'http');
  if (request.headers.host !== undefined) result.push('X-Forwarded-Host', request.headers.host);
  // A compressed stream could not be read for usage, nor its extra chunk withheld.
  result.push('Accept-Encoding', 'identity');
  result.push('X-Request-Id', identity.requestId, 'traceparent', identity.traceparent);
  return result;
}

/** What a replica's header fields say that the relay must know. */
export interface ReplicaHeaders {
  /** Flat name, value list for the client, without `X-Request-Id` and hop-by-hop fields. */
  readonly fields: string[];
  readonly isEventStream: boolean;
  readonly isJson: boolean;
  /** A Content-Encoding other than identity: the body cannot be read. */
  readonly isEncoded: boolean;
}

/**
 * Converts a replica's raw header fields (names and values in turn) for the client.
 * An event stream loses its Content-Length: an error event may have to be appended.
 */
export function toClientHeaders(rawHeaders: readonly (Buffer | string)[]): ReplicaHeaders {
  const fields: string[] = [];
  let named = NOTHING;
  let contentType = '';
  let isEncoded = false;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = toFieldText(rawHeaders[i]);
    const value = toFieldText(rawHeaders[i + 1]);
    const lower = name.toLowerCase();
    if (lower === 'connection') named = namesIn(value);
    if (lower === 'content-type') contentType = value.trimStart().toLowerCase();
    if (lower === 'content-encoding' && value.trim().toLowerCase() !== 'identity') isEncoded = true;
    if (!NOT_SENT_TO_CLIENT.has(lower)) fields.push(name, value);
  }
  const isEventStream = /^text\/event-stream(?:[\s;]|$)/.test(contentType);
  const dropped = new Set(named);
  if (isEventStream) dropped.add('content-length');
  return {
    fields: dropped.size === 0 ? fields : withoutFields(fields, dropped),
    isEventStream,
    isJson: /^application\/(?:[a-z0-9.+-]+\+)?json(?:[\s;]|$)/.test(contentType),
    isEncoded,
  };
}

function withoutFields(fields: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    if (!names.has(name.toLowerCase())) kept.push(name, fields[i + 1] as string);
  }
  return kept;
}

/** The field names that a Connection field lists, in lower case. */
function namesIn(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NOTHING;
  const lower = connection.toLowerCase();
  if (lower === 'keep-alive' || lower === 'close') return NOTHING;
  return new Set(lower.split(',').map((name) => name.trim()));
}

/** The text of a field's name or value: its bytes are latin-1 (RFC 9110 5.5), one byte, one character, both ways. */
export function toFieldText(value: Buffer | string | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : value.toString('latin1');
}
