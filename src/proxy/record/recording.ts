import type { Admission } from '#access/limits';
import { REPLICA_FAULTS } from '#otel/outcome';
import type { RequestNotes } from '#otel/record';
import type { FailedAttempt, RequestRecord } from '#otel/record/registry';
import type { AttemptSpan, RequestSpan, TraceContextFields } from '#otel/span';
import type { ApiClient } from '#proxy/entry';
import type { Lease } from '#replicas';
import { addGpuTime, type GpuShare } from '#replicas/gpu-time';
import type { Ending, Exchange } from '../exchange.ts';
import type { InspectedBody } from '../request/inspection/body-inspector.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { RequestTextDescription } from '../request/inspection/request-text.ts';
import type { RelayedResponse } from '../response/relay.ts';
import { StreamTap } from '../response/stream-tap.ts';
import { findOpenResponse, type StoringAttempt } from './open-response.ts';
import { type FormFacts, fillFromBody, fillFromForm } from './recorded-body.ts';
import { fillFromFields, type RecordedFields, toHttpFacts } from './recorded-fields.ts';
import { type PrefixUse, RecordedRoutes } from './recorded-route.ts';
import { type TokenEstimate, toTokensWithoutResponse, toUsedTokens } from './used-tokens.ts';

/** How an exchange ended, without the exchange. */
interface EndedExchange {
  readonly requestId: string;
  readonly durationMs: number;
  readonly scheme: 'http' | 'https';
  readonly status: number;
  readonly ending: Ending | null;
  readonly refusedBy: Admission['refusedBy'];
  readonly isTruncated: boolean;
}

type RecordingState =
  | { readonly kind: 'open'; readonly exchange: Exchange }
  | { readonly kind: 'closed'; readonly ended: EndedExchange };

/**
 * Collects the facts of one request for its record and its span. When the request is over `close` freezes them, and
 * `finish` makes the record, immediately or a little later.
 */
export class Recording {
  readonly span: RequestSpan;
  /** How many bytes of the request's body are kept until the record is made. */
  bodyBytes = 0;
  readonly #endpoint: string;
  readonly #fields: RecordedFields;
  #state: RecordingState;
  #facts: RequestFacts | null = null;
  #form: FormFacts | null = null;
  #describeText: (() => RequestTextDescription) | null = null;
  /** Null: the tokens of the request are not counted. */
  #estimate: TokenEstimate | null = null;
  #attemptCount = 0;
  /** Whether the replica of the current attempt, or the last one, may have read all of the request. */
  #isWritten = false;
  /** The attempt under way, or the last one. */
  #attempt: AttemptSpan | null = null;
  /** When it began: monotonic. */
  #attemptStartedMs = 0;
  /** Null: no attempt has failed. */
  #failedAttempts: FailedAttempt[] | null = null;
  readonly #routes = new RecordedRoutes();
  #replica: string | undefined;
  #previousReplica: string | undefined;
  #response: RelayedResponse | null = null;
  /** Null: no replica goes on with a response after its answer. */
  #storing: StoringAttempt | null = null;
  /** The response that goes on; undefined while that is not decided. */
  #open: { readonly id: string | null } | null | undefined;
  /** When the current wait for a replica began: monotonic; null while there is none. */
  #waitsSinceMs: number | null = null;
  #queuedMs: number | undefined;
  /** Of all attempts; null: none was at a replica with `gpu_count`. */
  #gpuShares: GpuShare[] | null = null;

  constructor(exchange: Exchange, span: RequestSpan, endpoint: string, fields: RecordedFields) {
    this.span = span;
    this.#state = { kind: 'open', exchange };
    this.#endpoint = endpoint;
    this.#fields = fields;
  }

  /** The trace context that the current attempt sends upstream. */
  get trace(): TraceContextFields {
    return this.#attempt ?? this.span;
  }

  /** Takes the client that the request comes from. */
  noteClient(client: ApiClient): void {
    this.#fields.client = client;
  }

  /** Takes the facts of the request body, and the function that describes its text when the record is made. */
  noteBody({ bytes, facts, describeText }: InspectedBody): void {
    this.bodyBytes = bytes.length;
    this.#facts = facts;
    this.#describeText = describeText;
  }

  /** Takes the form that is the body of the request. It is asked again when the record is made. */
  noteForm(form: FormFacts): void {
    this.#form = form;
  }

  /**
   * Describes the request's text now and drops its bytes. Call it for a large body once it is sent: otherwise the body
   * takes up memory until the end of the response.
   */
  describeBody(): void {
    if (this.#describeText === null || this.#state.kind === 'closed') return;
    const text = this.#describeText();
    this.#describeText = () => text;
    this.bodyBytes = 0;
  }

  /** Unicode code points of the request's text; undefined if it has none. The first call describes it. */
  readPromptChars(): number | undefined {
    const text = this.#describeText?.();
    if (text === undefined) return undefined;
    this.#describeText = () => text;
    return text.promptChars;
  }

  /** How long the request has waited for replicas, in milliseconds, without the current wait. */
  get queuedMs(): number {
    return this.#queuedMs ?? 0;
  }

  /** The request waits for a replica until the promise settles or the request ends. */
  noteWait(end: Promise<unknown>): void {
    this.#waitsSinceMs = performance.now();
    void end.then(() => this.#endWait());
  }

  /** The request takes a share of a replica's GPU time, until the lease or the request ends. */
  noteGpuShare(share: GpuShare): void {
    if (this.#state.kind === 'closed') return;
    share.claim();
    this.#gpuShares ??= [];
    this.#gpuShares.push(share);
  }

  /** How the replica of the next attempt was chosen. */
  noteRoute({
    replica,
    route,
  }: Pick<Lease, 'route'> & { readonly replica: { readonly name: string } }): void {
    if (this.#state.kind === 'open') this.#routes.note(replica.name, route);
  }

  /** Field lines that tell the client which replica it is served by, and why. */
  get routeLines(): string {
    return this.#routes.fieldLines;
  }

  /** The prefix by which requests are routed, as the current attempt finds it. */
  notePrefix(prefix: PrefixUse): void {
    if (this.#state.kind === 'open') this.#routes.prefix = prefix;
  }

  /** An attempt at a replica begins. `url`: origin and path prefix. */
  startAttempt({ name, url }: { readonly name: string; readonly url: string }): void {
    if (this.#state.kind === 'closed') return;
    this.#attemptCount++;
    this.#isWritten = false;
    this.#attemptStartedMs = performance.now();
    this.#previousReplica = this.#replica;
    this.#replica = name;
    this.#attempt = this.span.startAttempt({
      method: 'POST',
      ordinal: this.#attemptCount,
      replica: name,
      url: url + this.#endpoint,
    });
  }

  /** The replica of the current attempt may go on with the response after its answer. */
  noteStoring(attempt: StoringAttempt): void {
    if (this.#state.kind === 'open') this.#storing = attempt;
  }

  /** The answer is over. Call it before the lease is given back: a response that goes on is counted from here on. */
  noteOpenResponse(): void {
    if (this.#storing === null || this.#open !== undefined || this.#state.kind === 'closed') return;
    const { status, ending } = this.#state.exchange;
    const { isBackground, handOver } = this.#storing;
    this.#open = findOpenResponse(this.#response, {
      isBackground,
      isWritten: this.#isWritten,
      status,
      ending,
    });
    if (this.#open !== null) handOver();
  }

  /** The tokens that the request was admitted with. */
  noteEstimate(estimate: TokenEstimate): void {
    this.#estimate = estimate;
  }

  /** The system has taken all of the request of the current attempt. */
  noteWritten(): void {
    this.#isWritten = true;
  }

  /** The tokens that the request has used, as far as that is known. Ask when the exchange is over. */
  usedTokens(): number {
    const estimate = this.#estimate;
    if (estimate === null) return 0;
    const { ending, status } = this.#close();
    if (this.#response === null) return toTokensWithoutResponse(estimate, ending, this.#isWritten);
    const { isEventStream, facts } = this.#response;
    const outputCount = facts instanceof StreamTap ? facts.outputCount : 0;
    return toUsedTokens(estimate, { status, isEventStream, outputCount, usage: facts?.usage ?? {} });
  }

  /** The attempt failed. `status`: what the replica answered, if it did. */
  failAttempt(replica: string, code: string, status?: number): void {
    if (this.#state.kind === 'closed') return;
    const duration_ms = performance.now() - this.#attemptStartedMs;
    const after_ms = this.#state.exchange.durationMs;
    this.#failedAttempts ??= [];
    this.#failedAttempts.push({ replica, failure: code, status: status ?? null, duration_ms, after_ms });
    this.#attempt?.end({ status, errorType: code });
  }

  /** The attempt was the last one and is over. If the client left, the request has already ended. */
  finishAttempt(): void {
    if (this.#state.kind === 'closed' || this.#attempt === null) return;
    const { ending, isTruncated, status } = this.#state.exchange;
    const isFault = ending !== null && REPLICA_FAULTS.has(ending);
    this.#attempt.end({
      status: this.#response === null ? undefined : status,
      errorType: isFault ? ending : ending === null && isTruncated ? '_OTHER' : undefined,
    });
  }

  /** The last attempt does not count: its replica was drained before anything was sent. */
  withdrawAttempt(): void {
    this.#attempt = null;
    this.#attemptCount--;
    this.#replica = this.#previousReplica;
  }

  /** The response of this replica begins. It is not always the replica of the last attempt. */
  noteResponse(replica: string, response: RelayedResponse): void {
    if (this.#state.kind === 'closed') return;
    this.#replica = replica;
    this.#response = response;
  }

  /** Takes over how the exchange ended, and releases the exchange. Later facts are ignored. */
  close(): void {
    this.#close();
  }

  /** No record is made of the request. */
  discard(): void {
    for (const share of this.#gpuShares ?? []) {
      share.disclaim();
      share.end();
    }
  }

  /**
   * Makes the record of a request that is over, and ends its span. Returns the record. If the replica goes on with the
   * response, both wait for its end.
   */
  finish(): RequestRecord {
    const ended = this.#close();
    const record = this.#toRecord(ended);
    const http = { ...toHttpFacts(ended.scheme, this.#fields.host), notes: this.#toNotes() };
    if (this.#storing === null || this.#open == null) {
      this.span.end(record, http);
    } else {
      const { id } = this.#open;
      const chargedTokens = this.usedTokens();
      this.#storing.follow({ id, record, http, span: this.span.park(), chargedTokens });
    }
    return record;
  }

  #close(): EndedExchange {
    if (this.#state.kind === 'closed') return this.#state.ended;
    const { exchange } = this.#state;
    this.noteOpenResponse();
    this.#endWait();
    for (const share of this.#gpuShares ?? []) share.end();
    this.finishAttempt();
    const ended = {
      requestId: exchange.requestId,
      durationMs: exchange.durationMs,
      scheme: exchange.http.scheme,
      status: exchange.status,
      ending: exchange.ending,
      refusedBy: exchange.admission?.refusedBy,
      isTruncated: exchange.isTruncated,
    };
    this.#state = { kind: 'closed', ended };
    return ended;
  }

  #toRecord({ requestId, durationMs, status, ending, refusedBy, isTruncated }: EndedExchange): RequestRecord {
    const record: RequestRecord = {
      request_id: requestId,
      trace_id: this.span.traceId,
      ts: this.span.startedAt,
      endpoint: this.#endpoint,
      e2e_ms: durationMs,
      status,
      stream: this.#response?.isEventStream === true,
    };
    fillFromFields(record, this.#fields);
    if (this.#replica !== undefined) record.replica = this.#replica;
    if (this.#attemptCount > 0) record.attempts = this.#attemptCount;
    if (this.#failedAttempts !== null) record.failed_attempts = this.#failedAttempts;
    if (this.#queuedMs !== undefined) record.queue_ms = this.#queuedMs;
    if (this.#gpuShares !== null) addGpuTime(record, this.#gpuShares, this.#fields.currency);
    if (this.#form !== null) fillFromForm(record, this.#form);
    if (this.#facts !== null && this.#describeText !== null) {
      fillFromBody(record, this.#facts, this.#describeText());
    }
    this.#response?.facts?.fill(record);
    this.#routes.fill(record);
    if (ending !== null) record.error_type = ending;
    if (refusedBy !== undefined) record.refused_by = refusedBy;
    if (isTruncated) record.truncated = true;
    return record;
  }

  /** Undefined: the request says nothing of itself. */
  #toNotes(): RequestNotes | undefined {
    const { names } = this.#fields;
    const parameters = this.#facts?.parameters ?? undefined;
    return names === undefined && parameters === undefined ? undefined : { names, parameters };
  }

  #endWait(): void {
    if (this.#waitsSinceMs === null) return;
    this.#queuedMs = this.queuedMs + performance.now() - this.#waitsSinceMs;
    this.#waitsSinceMs = null;
  }
}
