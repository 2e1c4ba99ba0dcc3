import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api';
import { decodeSet, type RecordLayout, toFailureType } from '#otel/record';
import { OPERATIONS, type RequestRecord, SEMCONV } from '#otel/record/registry';
import { type AttemptStart, toServerAttributes } from './attempt-span.ts';
import type { SpanIdSource, SpanIds } from './trace-ids.ts';

/** The inference operation of a request, from the search for a replica to the end of the response. */
export interface OperationStart {
  readonly ids: SpanIds;
  readonly startedEpochMs: number;
}

/** An operation that has ended. */
export interface EndedOperation {
  readonly start: OperationStart;
  readonly endedEpochMs: number;
  readonly record: Readonly<RequestRecord>;
  /** The last attempt; null if none was made. */
  readonly attempt: AttemptStart | null;
  /** Whether attempts have no spans of their own, so that this one stands for the call of the replica. */
  readonly isInnermost: boolean;
}

/**
 * Creates the CLIENT span of the operation, `chat {model}`, as a child of the request's span. It covers all attempts, as
 * the conventions want it of retries ("GenAI spans represent logical operations as observed by the caller"). It has what
 * the conventions say of GenAI; the request's span then has none of it.
 */
export function recordOperationSpan(
  {
    tracer,
    ids,
    layout,
  }: { readonly tracer: Tracer; readonly ids: SpanIdSource; readonly layout: RecordLayout },
  requestSpan: Span,
  { start, endedEpochMs, record, attempt, isInnermost }: EndedOperation,
): Span {
  const error = toFailureType(record);
  const operation = OPERATIONS.get(record.endpoint) ?? record.endpoint;
  ids.assign(start.ids);
  const span = tracer.startSpan(
    record.model === undefined ? operation : `${operation} ${record.model}`,
    { kind: SpanKind.CLIENT, startTime: start.startedEpochMs },
    trace.setSpan(ROOT_CONTEXT, requestSpan),
  );
  if (layout.operation !== null)
    span.setAttributes(decodeSet({ record, http: { scheme: 'http' } }, layout.operation));
  if (attempt !== null) span.setAttributes(toServerAttributes(attempt));
  // A service graph would draw two edges if the attempts named the replica, too.
  if (attempt !== null && isInnermost) span.setAttribute(SEMCONV.peerService, attempt.replica);
  if (error !== undefined) {
    span.setAttribute(SEMCONV.errorType, error).setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(endedEpochMs);
  return span;
}
