import type { TraceContextFields } from '#otel/span';
import { Fields, type RequestHead, type ResponseHead } from '#wire/message';

/** Connection-specific fields that no proxy forwards (RFC 9110 7.6.1). */
const HOP_BY_HOP = ['connection', 'proxy-connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade'];

/** Fields that the gateway sets itself upstream, or hides from replicas. */
const NOT_SENT_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  'content-length',
  'accept-encoding',
  'x-request-id',
  'traceparent',
  'tracestate',
  'baggage',
  'forwarded',
  'x-real-ip',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
]);

/** Content-Length is written where the body is framed. */
const NOT_SENT_TO_CLIENT: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length', 'x-request-id']);

/** Fields that are not allowed in trailers: framing, routing, authentication, how to read the body (RFC 9110 6.5.1). */
const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([
  ...NOT_SENT_TO_CLIENT,
  ...['host', 'trailer', 'authorization', 'proxy-authenticate', 'proxy-authorization', 'www-authenticate'],
  ...['set-cookie', 'cookie', 'content-type', 'content-encoding', 'content-range', 'cache-control', 'expect'],
  ...['location', 'vary', 'retry-after', 'age', 'date', 'expires', 'max-forwards', 'range', 'traceparent'],
]);

/** What the gateway adds to a request to a replica. */
export interface UpstreamIdentity {
  /** This gateway's name in Via. */
  readonly viaName: string;
  readonly requestId: string;
  readonly trace: TraceContextFields;
  /** Sent instead of the client's Authorization and x-api-key if the replica has its own key. */
  readonly apiKey: string | null;
  /** Fields that are left out, in lower case; null: none. */
  readonly withheldFields: ReadonlySet<string> | null;
}

/** Where a request goes. */
export interface UpstreamTarget {
  /** The value of Host. */
  readonly host: string;
  /** Path and query. */
  readonly path: string;
}

/** The client of a request. */
export interface ClientFacts {
  readonly remoteAddress: string | undefined;
  readonly scheme: 'http' | 'https';
}

/**
 * The head of a request to a replica, as text: the client's fields in their order and spelling, without those that
 * concern the connection or that the gateway sets itself. Fields with an underscore in their names are omitted, since
 * many servers read `Content_Length` as `Content-Length`.
 *
 * @param bodyBytes the length of the body; null: no body; `chunked`: unknown
 */
export function toUpstreamHead(
  head: RequestHead,
  target: UpstreamTarget,
  identity: UpstreamIdentity,
  client: ClientFacts,
  bodyBytes: number | 'chunked' | null,
): string {
  const { fields, connectionOptions } = head;
  const { names, lowerNames, values } = fields;
  const { withheldFields } = identity;
  let text = `${head.method} ${target.path} HTTP/1.1\r\nHost: ${target.host}\r\n`;
  let forwardedFor = '';
  for (let i = 0; i < names.length; i++) {
    const lower = lowerNames[i] as string;
    const value = values[i] as string;
    if (NOT_SENT_UPSTREAM.has(lower)) {
      if (lower === 'x-forwarded-for') forwardedFor += `${value}, `;
      continue;
    }
    if (connectionOptions?.has(lower) === true || lower.includes('_')) continue;
    if (identity.apiKey !== null && (lower === 'authorization' || lower === 'x-api-key')) continue;
    if (withheldFields?.has(lower) === true) continue;
    text += `${names[i]}: ${value}\r\n`;
  }
  if (identity.apiKey !== null) text += `Authorization: Bearer ${identity.apiKey}\r\n`;
  const { remoteAddress } = client;
  if (remoteAddress !== undefined) forwardedFor += remoteAddress;
  else forwardedFor = forwardedFor.slice(0, -2);
  if (forwardedFor !== '') text += `X-Forwarded-For: ${forwardedFor}\r\n`;
  const host = fields.get('host');
  if (host !== undefined) text += `X-Forwarded-Host: ${host}\r\n`;
  if (bodyBytes === 'chunked') text += 'Transfer-Encoding: chunked\r\n';
  else if (bodyBytes !== null) text += `Content-Length: ${bodyBytes}\r\n`;
  const { traceparent, tracestate } = identity.trace;
  if (tracestate !== undefined) text += `tracestate: ${tracestate}\r\n`;
  return (
    `${text}Via: 1.${head.minorVersion} ${identity.viaName}\r\nX-Forwarded-Proto: ${client.scheme}\r\n` +
    // The usage of a compressed stream could not be read, nor its extra chunk withheld.
    `Accept-Encoding: identity\r\nX-Request-Id: ${identity.requestId}\r\n` +
    `traceparent: ${traceparent}\r\n\r\n`
  );
}

/** What the relay must know of a replica's response head. */
export interface RelayedHead {
  readonly status: number;
  /** Latin-1, byte for byte. */
  readonly reason: string;
  /** Field lines for the client, without `X-Request-Id`, `Content-Length` and hop-by-hop fields. */
  readonly fieldLines: string;
  /** Null: unknown, or not sent to the client. */
  readonly contentLength: number | null;
  /** Whether only the end of the connection says where the body ends. */
  readonly endsWithConnection: boolean;
  /** The names in its Connection fields, in lower case; null if there are none. */
  readonly connectionOptions: ReadonlySet<string> | null;
  readonly isEventStream: boolean;
  readonly isJson: boolean;
  /** A Content-Encoding other than identity: the body cannot be read. */
  readonly isEncoded: boolean;
}

/**
 * Converts a replica's response head for the client. An event stream loses its Content-Length: an error event may
 * have to be appended.
 */
export function toRelayedHead({
  status,
  reason,
  fields,
  framing,
  connectionOptions,
}: ResponseHead): RelayedHead {
  const { names, lowerNames, values } = fields;
  let fieldLines = '';
  let contentType = '';
  let isEncoded = false;
  let announcedBytes: number | null = null;
  for (let i = 0; i < names.length; i++) {
    const lower = lowerNames[i] as string;
    const value = values[i] as string;
    if (lower === 'content-type') contentType = value.toLowerCase();
    if (lower === 'content-encoding' && value.toLowerCase() !== 'identity') isEncoded = true;
    if (lower === 'content-length') announcedBytes = Number(value);
    if (NOT_SENT_TO_CLIENT.has(lower) || connectionOptions?.has(lower) === true) continue;
    fieldLines += `${names[i]}: ${value}\r\n`;
  }
  const isEventStream = /^text\/event-stream(?:[\s;]|$)/.test(contentType);
  const contentLength =
    framing.kind === 'length' ? framing.bytes : framing.kind === 'none' ? announcedBytes : null;
  return {
    status,
    reason,
    fieldLines,
    isEncoded,
    isEventStream,
    connectionOptions,
    endsWithConnection: framing.kind === 'until_close',
    contentLength: isEventStream ? null : contentLength,
    isJson: /^application\/(?:[a-z0-9.+-]+\+)?json(?:[\s;]|$)/.test(contentType),
  };
}

/** The trailer fields that a client may get, without those that `Connection` in the head named. */
export function toClientTrailers(trailers: Fields, connectionOptions: ReadonlySet<string> | null): Fields {
  if (trailers.count === 0) return trailers;
  const kept = new Fields();
  for (let i = 0; i < trailers.count; i++) {
    const lower = trailers.lowerNames[i] as string;
    if (NOT_IN_TRAILERS.has(lower) || connectionOptions?.has(lower) === true) continue;
    kept.add(trailers.names[i] as string, lower, trailers.values[i] as string);
  }
  return kept;
}
