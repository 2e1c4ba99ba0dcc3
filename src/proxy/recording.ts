import type { IncomingMessage } from 'node:http';
import type { AttemptSpan } from '#otel/attempt-span.ts';
import type { RecordedEndpoint, RequestRecord } from '#otel/request-record.ts';
import type { RequestSpan } from '#otel/request-span.ts';
import type { Ending, Exchange } from './exchange.ts';
import type { ResponseFacts } from './relay.ts';
import type { RequestFacts } from './request-facts.ts';

/** The endings that are the replica's doing, where a response of its own had begun. */
const FAULTS_OF_REPLICA: ReadonlySet<Ending> = new Set([
  'upstream_failed',
  'upstream_timeout',
  'upstream_error',
]);

const MAX_NAME_CHARS = 256;
const MAX_CLIENT_REQUEST_ID_CHARS = 128;

/** The header names, in lower case, from which tenant and feature are taken. */
export interface RecordedHeaders {
  readonly tenant: string;
  readonly feature: string;
}

/** The record of one request while it is being filled, and its span. */
export class Recording {
  readonly span: RequestSpan;
  readonly #record: RequestRecord;
  readonly #exchange: Exchange;
  #attemptCount = 0;
  /** The attempt under way, or the last one. */
  #attempt: AttemptSpan | null = null;
  #previousReplica: string | undefined;
  #responseFacts: (() => ResponseFacts) | null = null;
  /** When it began to wait for a replica: monotonic; null while it does not. */
  #waitsSinceMs: number | null = null;

  constructor(exchange: Exchange, span: RequestSpan, endpoint: RecordedEndpoint, headers: RecordedHeaders) {
    this.span = span;
    this.#exchange = exchange;
    this.#record = {
      request_id: exchange.requestId,
      trace_id: span.traceId,
      ts: new Date().toISOString(),
      endpoint,
      e2e_ms: 0,
      status: 0,
      stream: false,
    };
    const { request } = exchange;
    setIfText(this.#record, 'tenant', headerOf(request, headers.tenant), MAX_NAME_CHARS);
    setIfText(this.#record, 'feature', headerOf(request, headers.feature), MAX_NAME_CHARS);
    setIfText(
      this.#record,
      'client_request_id',
      headerOf(request, 'x-request-id'),
      MAX_CLIENT_REQUEST_ID_CHARS,
    );
  }

  /** What the attempt under way sends upstream. */
  get traceparent(): string {
    return this.#attempt?.traceparent ?? this.span.traceparent;
  }

  /** Notes what the request body asks for. */
  noteFacts(facts: RequestFacts): void {
    this.#record.model = cut(facts.model, MAX_NAME_CHARS);
    if (facts.maxTokens !== undefined) this.#record.max_tokens = facts.maxTokens;
  }

  /** Notes the length and hashes of the request text. */
  noteText(text: { readonly promptChars?: number; readonly prefixHashes?: readonly string[] }): void {
    if (text.promptChars !== undefined) this.#record.prompt_chars = text.promptChars;
    if (text.prefixHashes !== undefined) this.#record.prefix_hashes = text.prefixHashes;
  }

  /** How long the request has waited for replicas, in milliseconds; waits under way do not count yet. */
  get queuedMs(): number {
    return this.#record.queue_ms ?? 0;
  }

  /** Notes that the request waits for a replica, until the promise is settled or the request ends. */
  noteWait(end: Promise<unknown>): void {
    this.#waitsSinceMs = performance.now();
    void end.then(() => this.#endWait());
  }

  /** Notes that a replica is being tried. `url`: origin and path prefix. */
  noteTry({ name, url }: { readonly name: string; readonly url: string }): void {
    this.#attemptCount++;
    this.#previousReplica = this.#record.replica;
    this.#record.replica = name;
    this.#attempt = this.span.startAttempt({
      method: 'POST',
      ordinal: this.#attemptCount,
      replica: name,
      url: url + this.#record.endpoint,
    });
  }

  /** Notes that the try failed, and what the replica answered if it did. */
  noteFailedTry(replica: string, code: string, status?: number): void {
    this.span.addFailedAttempt({ attempt: this.#attemptCount, replica, code });
    this.#attempt?.end({ status, errorType: code });
  }

  /** Notes that the try was the last, and is over. */
  noteLastTry(): void {
    const { ending, isTruncated, status } = this.#exchange;
    const isFault = ending !== null && FAULTS_OF_REPLICA.has(ending);
    this.#attempt?.end({
      status: this.#responseFacts === null ? undefined : status,
      errorType: isFault ? ending : ending === null && isTruncated ? '_OTHER' : undefined,
    });
  }

  /** Takes back the last try: the replica was drained before anything was sent. */
  takeBackTry(): void {
    this.#attempt = null;
    this.#attemptCount--;
    if (this.#previousReplica === undefined) delete this.#record.replica;
    else this.#record.replica = this.#previousReplica;
  }

  /** Notes that a replica's response begins. */
  noteResponse(isEventStream: boolean, facts: () => ResponseFacts): void {
    this.#record.stream = isEventStream;
    this.#responseFacts = facts;
  }

  /** Completes the record with how the exchange ended, ends the span, and returns the record. */
  finish(): RequestRecord {
    const record = this.#record;
    const exchange = this.#exchange;
    record.e2e_ms = performance.now() - exchange.arrivedMs;
    record.status = exchange.status;
    if (this.#attemptCount > 0) record.attempts = this.#attemptCount;
    this.#endWait();
    this.#responseFacts?.()?.fill(record);
    if (exchange.ending !== null) record.error_type = exchange.ending;
    if (exchange.isTruncated) record.truncated = true;
    // A client that leaves ends the request before its try has heard of it.
    this.noteLastTry();
    const { host } = exchange.request.headers;
    this.span.end(record, { scheme: 'http', ...(host === undefined ? {} : toServer(host)) });
    return record;
  }

  #endWait(): void {
    if (this.#waitsSinceMs === null) return;
    this.#record.queue_ms = this.queuedMs + performance.now() - this.#waitsSinceMs;
    this.#waitsSinceMs = null;
  }
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

function setIfText(
  record: RequestRecord,
  name: 'tenant' | 'feature' | 'client_request_id',
  value: string | undefined,
  maxChars: number,
): void {
  if (value === undefined) return;
  const cleaned = cut(toUnicode(value).replace(/\p{Cc}/gu, ''), maxChars).trim();
  if (cleaned !== '') record[name] = cleaned;
}

/** At most this many UTF-16 units, never half a character. */
function cut(text: string, maxChars: number): string {
  return (text.length > maxChars ? text.slice(0, maxChars) : text).toWellFormed();
}

/** Field bytes reach us as latin-1; clients that send UTF-8 are read as such. */
function toUnicode(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const decoded = Buffer.from(value, 'latin1').toString('utf8');
  return decoded.includes('\ufffd') ? value : decoded;
}

/** The host and port of a Host field; nothing where it is not one. */
function toServer(host: string): { serverAddress?: string; serverPort?: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,255})(?::(\d{1,5}))?$/.exec(host);
  if (match?.[1] === undefined) return {};
  const serverAddress = match[1].replace(/^\[|\]$/g, '');
  return match[2] === undefined ? { serverAddress } : { serverAddress, serverPort: Number(match[2]) };
}
