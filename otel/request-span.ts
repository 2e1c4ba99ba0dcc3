import {
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { type AttemptSpan, type AttemptStart, startAttemptSpan } from './attempt-span.ts';
import { FAILED_ATTEMPT } from './attribute-names.ts';
import { createAttributesEncoder, type HttpFacts, toErrorType } from './attributes.ts';
import { setEncodedAttributes } from './encode-span.ts';
import type { RecordedEndpoint, RequestRecord } from './request-record.ts';
import { toTraceparent } from './trace-ids.ts';

/** The span of one proxied request. */
export interface RequestSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** `00-<trace>-<span>-01`. What goes upstream is the attempt's, which is this one without attempt spans. */
  readonly traceparent: string;
  /** Begins an attempt. It must be ended before the request is. */
  startAttempt(start: AttemptStart): AttemptSpan;
  /** Notes an attempt that failed, the first being 1, as a span event. */
  addFailedAttempt(facts: FailedAttempt): void;
  /** Ends the span: the record enters the queue, or is dropped, at once. Only the first call counts. */
  end(record: Readonly<RequestRecord>, http: HttpFacts): void;
}

/** One try that did not serve the request, and its failure code. */
export interface FailedAttempt {
  readonly attempt: number;
  readonly replica: string;
  readonly code: string;
}

/** What is known of a request when it arrives. */
export interface RequestSpanStart {
  readonly method: 'POST';
  readonly route: RecordedEndpoint;
  readonly incomingTraceparent?: string | undefined;
}

/**
 * Creates what starts the span of a request, as the root of a new trace: a client at a public door must not choose
 * our ids, nor whether we record (W3C Trace Context, "Restart trace"). Its own trace becomes a link, whatever its
 * flags. `attemptSpans`: whether attempts get spans of their own.
 */
export function createRequestSpans(
  tracer: Tracer,
  { attemptSpans }: { readonly attemptSpans: boolean },
): (start: RequestSpanStart) => RequestSpan {
  const encodeAttributes = createAttributesEncoder();
  return (start) => {
    const span = tracer.startSpan(
      `${start.method} ${start.route}`,
      { kind: SpanKind.SERVER, root: true, links: toLinks(start.incomingTraceparent) },
      ROOT_CONTEXT,
    );
    const ids = span.spanContext();
    const traceparent = toTraceparent(ids, '01');
    return {
      traceId: ids.traceId,
      traceparent,
      startAttempt: (attempt) =>
        attemptSpans ? startAttemptSpan(tracer, span, attempt) : { traceparent, end: () => undefined },
      addFailedAttempt: (facts) => addFailedAttempt(span, facts),
      end(record, http) {
        if (!span.isRecording()) return;
        setEncodedAttributes(span, encodeAttributes(record, http));
        if (toErrorType(record) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  };
}

function addFailedAttempt(span: Span, { attempt, replica, code }: FailedAttempt): void {
  if (!span.isRecording()) return;
  span.addEvent(FAILED_ATTEMPT.event, {
    [FAILED_ATTEMPT.attempt]: attempt,
    [FAILED_ATTEMPT.replica]: replica,
    [FAILED_ATTEMPT.errorType]: code,
  });
}

function toLinks(traceparent: string | undefined): Link[] {
  const context = traceparent === undefined ? null : parseTraceParent(traceparent);
  return context === null ? [] : [{ context: { ...context, isRemote: true } }];
}
