import {
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { FAILED_ATTEMPT } from '../encode/attribute-names.ts';
import { createAttributesEncoder, type HttpFacts, toErrorType } from '../encode/attributes.ts';
import { toRecordAttributes } from '../encode/record-attributes.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { type AttemptSpan, type AttemptStart, type EndedAttempt, recordAttemptSpan } from './attempt-span.ts';
import { type SpanIdSource, type SpanIds, toTraceparent } from './trace-ids.ts';
import { UtcTimestamps } from './utc-timestamps.ts';

/** The span of one proxied request: its ids from the beginning, all else noted until it ends. */
export interface RequestSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** When it began: epoch milliseconds. */
  readonly startedEpochMs: number;
  /** The same as RFC 3339 in UTC. */
  readonly startedAt: string;
  /** `00-<trace>-<span>-01`. What goes upstream is the attempt's, which is this one without attempt spans. */
  readonly traceparent: string;
  /** Begins an attempt. It must be ended before the request is. */
  startAttempt(start: AttemptStart): AttemptSpan;
  /** Notes an attempt that failed, the first being 1, as a span event. */
  addFailedAttempt(facts: FailedAttempt): void;
  /**
   * Makes the span, as long as the record's `e2e_ms`: the record enters the queue, or is dropped, at once. Only the
   * first call counts.
   */
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
  readonly route: string;
  readonly incomingTraceparent?: string | undefined;
}

/** What spans are made with: a tracer whose ids come from `ids`. */
export interface SpanMakers {
  readonly tracer: Tracer;
  readonly ids: SpanIdSource;
}

/**
 * Creates what starts the span of a request, as the root of a new trace: a client at a public door must not choose
 * our ids, nor whether we record (W3C Trace Context, "Restart trace"). Its own trace becomes a link, whatever its
 * flags. `attemptSpans`: whether attempts get spans of their own.
 *
 * The SDK's span is made when the request has ended, with the times that it began and took: until then only its ids
 * are needed, and whoever ends requests can make the spans of several at a time.
 */
export function createRequestSpans(
  makers: SpanMakers,
  { attemptSpans }: { readonly attemptSpans: boolean },
): (start: RequestSpanStart) => RequestSpan {
  const shared = {
    ...makers,
    encodeAttributes: createAttributesEncoder(),
    timestamps: new UtcTimestamps(),
    attemptSpans,
  };
  return (start) => new NotedRequestSpan(start, shared);
}

interface SharedBySpans extends SpanMakers {
  readonly encodeAttributes: ReturnType<typeof createAttributesEncoder>;
  readonly timestamps: UtcTimestamps;
  readonly attemptSpans: boolean;
}

class NotedRequestSpan implements RequestSpan {
  readonly traceparent: string;
  readonly #ids: SpanIds;
  readonly #start: RequestSpanStart;
  readonly #shared: SharedBySpans;
  readonly #stopwatch = new Stopwatch();
  #attempts: EndedAttempt[] | null = null;
  #failedAttempts: { readonly facts: FailedAttempt; readonly epochMs: number }[] | null = null;
  #isEnded = false;

  constructor(start: RequestSpanStart, shared: SharedBySpans) {
    this.#start = start;
    this.#shared = shared;
    this.#ids = shared.ids.drawIds();
    this.traceparent = toTraceparent(this.#ids, '01');
  }

  get traceId(): string {
    return this.#ids.traceId;
  }

  get startedEpochMs(): number {
    return this.#stopwatch.startedEpochMs;
  }

  get startedAt(): string {
    return this.#shared.timestamps.toText(this.startedEpochMs);
  }

  startAttempt(start: AttemptStart): AttemptSpan {
    const { attemptSpans, ids } = this.#shared;
    if (!attemptSpans) return { traceparent: this.traceparent, end: () => undefined };
    const own = { traceId: this.traceId, spanId: ids.drawSpanId() };
    const startedEpochMs = this.#stopwatch.epochMs();
    let isEnded = false;
    return {
      traceparent: toTraceparent(own, '01'),
      end: (result) => {
        if (isEnded) return;
        isEnded = true;
        this.#attempts ??= [];
        const endedEpochMs = this.#stopwatch.epochMs();
        this.#attempts.push({ start, result, ids: own, startedEpochMs, endedEpochMs });
      },
    };
  }

  addFailedAttempt(facts: FailedAttempt): void {
    this.#failedAttempts ??= [];
    this.#failedAttempts.push({ facts, epochMs: this.#stopwatch.epochMs() });
  }

  end(record: Readonly<RequestRecord>, http: HttpFacts): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { tracer, ids, encodeAttributes } = this.#shared;
    const { method, route, incomingTraceparent } = this.#start;
    const { startedEpochMs } = this;
    ids.assign(this.#ids);
    const span = tracer.startSpan(
      `${method} ${route}`,
      { kind: SpanKind.SERVER, startTime: startedEpochMs, links: toLinks(incomingTraceparent) },
      ROOT_CONTEXT,
    );
    for (const attempt of this.#attempts ?? []) recordAttemptSpan(this.#shared, span, attempt);
    for (const { facts, epochMs } of this.#failedAttempts ?? []) addFailedAttempt(span, facts, epochMs);
    Object.assign(span, { attributes: toRecordAttributes(record, encodeAttributes(record, http)) });
    if (toErrorType(record) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(startedEpochMs + record.e2e_ms);
  }
}

/** Times as the system's clock would have them, if nobody set it since the beginning. */
class Stopwatch {
  readonly startedEpochMs = Date.now();
  readonly #startedMs = performance.now();

  epochMs(): number {
    return this.startedEpochMs + performance.now() - this.#startedMs;
  }
}

function addFailedAttempt(span: Span, { attempt, replica, code }: FailedAttempt, epochMs: number): void {
  const attributes = {
    [FAILED_ATTEMPT.attempt]: attempt,
    [FAILED_ATTEMPT.replica]: replica,
    [FAILED_ATTEMPT.errorType]: code,
  };
  span.addEvent(FAILED_ATTEMPT.event, attributes, epochMs);
}

function toLinks(traceparent: string | undefined): Link[] {
  const context = traceparent === undefined ? null : parseTraceParent(traceparent);
  return context === null ? [] : [{ context: { ...context, isRemote: true } }];
}
