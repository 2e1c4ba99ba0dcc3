import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { toServerAddress } from '#otel/base';
import { toFailureType } from '#otel/outcome';
import { type Dialects, type GenAiNames, type HttpFacts, toOperationAttributes } from '#otel/record';
import { OPERATIONS, type RequestRecord, SEMCONV } from '#otel/record/registry';
import type { TraceContextFields } from './incoming-context.ts';

/** The facts of an attempt that are known when it begins. */
export interface AttemptStart {
  readonly method: 'POST';
  /** The number of the attempt within its request; the first is 1. */
  readonly ordinal: number;
  /** The name of the replica. */
  readonly replica: string;
  /** Absolute, without credentials, query and fragment. */
  readonly url: string;
}

/** How an attempt ended. */
export interface AttemptEnd {
  /** The replica's status; absent if no response headers arrived. */
  readonly status?: number | undefined;
  /** Why it failed; absent if it succeeded, if the client disconnected, or if the status says it. */
  readonly errorType?: string | undefined;
}

/**
 * One attempt at a replica, with the trace context that it sends upstream: that of the innermost span. If `end` is
 * never called, no attempt was made, and there is no span.
 */
export interface AttemptSpan extends TraceContextFields {
  /** Ends the attempt. Only the first call counts. */
  end(result: AttemptEnd): void;
}

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly start: AttemptStart;
  readonly result: AttemptEnd;
  readonly startedEpochMs: number;
  readonly endedEpochMs: number;
}

/**
 * Starts the CLIENT span of the inference operation, as a child of the request's span. It covers all attempts, as the
 * conventions want it of retries ("GenAI spans represent logical operations as observed by the caller").
 */
export function startOperationSpan(tracer: Tracer, request: Span, startTime: number): Span {
  return startChild(tracer, request, 'operation', startTime);
}

/** Starts the CLIENT span of an attempt, as a child of the operation's span. */
export function startAttemptSpan(
  tracer: Tracer,
  operation: Span,
  { method }: AttemptStart,
  startTime: number,
): Span {
  // Without a low-cardinality target, the name is the method (semantic conventions, HTTP spans).
  return startChild(tracer, operation, method, startTime);
}

function startChild(tracer: Tracer, parent: Span, name: string, startTime: number): Span {
  const options = { kind: SpanKind.CLIENT, startTime };
  return tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, parent));
}

/** What the span of an operation tells. */
export interface EndedOperation {
  readonly record: Readonly<RequestRecord>;
  readonly http: HttpFacts;
  readonly genAi: GenAiNames;
  readonly dialects: Dialects | null;
  /** The last attempt; null if none was made. */
  readonly attempt: AttemptStart | null;
  /** Whether attempts have no spans of their own, so that this one stands for the call of the replica. */
  readonly isInnermost: boolean;
  readonly endedEpochMs: number;
}

/**
 * Ends the span of an operation, `chat {model}`. It has what the conventions say of GenAI; the request's span then has
 * none of it.
 */
export function endOperationSpan(
  span: Span,
  { record, http, genAi, dialects, attempt, isInnermost, endedEpochMs }: EndedOperation,
): void {
  const operation = OPERATIONS.get(record.endpoint) ?? record.endpoint;
  span.updateName(record.model === undefined ? operation : `${operation} ${record.model}`);
  span.setAttributes(toOperationAttributes(record, http, genAi, dialects));
  if (attempt !== null) span.setAttributes(toServerAttributes(attempt));
  // A service graph would draw two edges if the attempts named the replica, too.
  if (attempt !== null && isInnermost) span.setAttribute(SEMCONV.peerService, attempt.replica);
  setError(span, toFailureType(record));
  span.end(endedEpochMs);
}

/** Ends the span of an attempt. */
export function endAttemptSpan(span: Span, { start, result, endedEpochMs }: EndedAttempt): void {
  const { status, errorType } = result;
  span.setAttributes(toAttemptAttributes(start, status));
  // A 4xx is an error on a CLIENT span but not on a SERVER span (semantic conventions, HTTP spans, "Status").
  setError(span, errorType ?? (status !== undefined && status >= 400 ? String(status) : undefined));
  span.end(endedEpochMs);
}

function setError(span: Span, error: string | undefined): void {
  if (error === undefined) return;
  span.setAttribute(SEMCONV.errorType, error).setStatus({ code: SpanStatusCode.ERROR });
}

/** Without model and usage: backends that sum the tokens of a trace would count them twice. */
function toAttemptAttributes(start: AttemptStart, status: number | undefined): Attributes {
  const { method, ordinal, replica, url } = start;
  return {
    [SEMCONV.httpRequestMethod]: method,
    [SEMCONV.urlFull]: url,
    ...toServerAttributes(start),
    [SEMCONV.peerService]: replica,
    [SEMCONV.httpRequestResendCount]: ordinal > 1 ? ordinal - 1 : undefined,
    [SEMCONV.httpResponseStatusCode]: status,
  };
}

/** The host and the port of an attempt's replica. */
function toServerAttributes({ url }: AttemptStart): Attributes {
  const { address, port } = toServerAddress(url);
  return { [SEMCONV.serverAddress]: address, [SEMCONV.serverPort]: port };
}
