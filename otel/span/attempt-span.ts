import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { SEMCONV } from '#otel/record/registry';
import type { TraceContextFields } from './incoming-context.ts';
import type { SpanIdSource, SpanIds } from './trace-ids.ts';

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

/** An attempt that has ended, with its ids and times. */
export interface EndedAttempt {
  readonly start: AttemptStart;
  readonly result: AttemptEnd;
  readonly ids: SpanIds;
  readonly startedEpochMs: number;
  readonly endedEpochMs: number;
}

/** Creates the CLIENT span of an attempt, as a child of the operation's span. */
export function recordAttemptSpan(
  { tracer, ids }: { readonly tracer: Tracer; readonly ids: SpanIdSource },
  operationSpan: Span,
  attempt: EndedAttempt,
): void {
  const { start, result, startedEpochMs, endedEpochMs } = attempt;
  const { status, errorType } = result;
  // A 4xx is an error on a CLIENT span but not on a SERVER span (semantic conventions, HTTP spans, "Status").
  const error = errorType ?? (status !== undefined && status >= 400 ? String(status) : undefined);
  ids.assign(attempt.ids);
  // Without a low-cardinality target, the name is the method (semantic conventions, HTTP spans).
  const span = tracer.startSpan(
    start.method,
    { kind: SpanKind.CLIENT, startTime: startedEpochMs },
    trace.setSpan(ROOT_CONTEXT, operationSpan),
  );
  span.setAttributes(toAttributes(start, status, error));
  if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endedEpochMs);
}

/** Without model and usage: backends that sum the tokens of a trace would count them twice. */
function toAttributes(
  start: AttemptStart,
  status: number | undefined,
  error: string | undefined,
): Attributes {
  const { method, ordinal, replica, url } = start;
  return {
    [SEMCONV.httpRequestMethod]: method,
    [SEMCONV.urlFull]: url,
    ...toServerAttributes(start),
    [SEMCONV.peerService]: replica,
    ...(ordinal > 1 ? { [SEMCONV.httpRequestResendCount]: ordinal - 1 } : {}),
    ...(status === undefined ? {} : { [SEMCONV.httpResponseStatusCode]: status }),
    ...(error === undefined ? {} : { [SEMCONV.errorType]: error }),
  };
}

/** The host and the port of an attempt's replica. */
export function toServerAttributes({ url }: Pick<AttemptStart, 'url'>): Attributes {
  const { hostname, port, protocol } = new URL(url);
  return {
    [SEMCONV.serverAddress]: hostname.replace(/^\[|\]$/g, ''),
    [SEMCONV.serverPort]: port === '' ? DEFAULT_PORTS[protocol] : Number(port),
  };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
