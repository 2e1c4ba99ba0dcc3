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
import { type HttpFacts, toErrorType } from '../encode/attributes.ts';
import { toRecordAttributes } from '../encode/record-attributes.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { type AttemptSpan, type AttemptStart, type EndedAttempt, recordAttemptSpan } from './attempt-span.ts';
import { type SpanIdSource, type SpanIds, toTraceparent } from './trace-ids.ts';
import { UtcTimestamps } from './utc-timestamps.ts';

/** The span of one proxied request. */
export interface RequestSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** When the request arrived: epoch milliseconds. */
  readonly startedEpochMs: number;
  /** The same time as RFC 3339 in UTC. */
  readonly startedAt: string;
  /** `00-<trace>-<span>-01`. Each attempt sends its own upstream, which equals this one without attempt spans. */
  readonly traceparent: string;
  /** Begins an attempt. End it before the request. */
  startAttempt(start: AttemptStart): AttemptSpan;
  /** Adds a failed attempt as a span event. */
  addFailedAttempt(facts: FailedAttempt): void;
  /**
   * Numbers the record, and ends the span after its `e2e_ms`. The record enters the queue or is dropped at once. Only the first call
   * counts.
   */
  end(record: RequestRecord, http: HttpFacts): void;
}

/** An attempt that did not serve the request. */
export interface FailedAttempt {
  /** The first attempt is 1. */
  readonly attempt: number;
  readonly replica: string;
  /** The failure code. */
  readonly code: string;
  /** What the replica answered; undefined if it did not. */
  readonly status?: number | undefined;
  readonly durationMs: number;
}

/** The facts of a request that are known when it arrives. */
export interface RequestSpanStart {
  readonly method: 'POST';
  readonly route: string;
  readonly incomingTraceparent?: string | undefined;
}

/** A tracer, and the generator of its ids. */
export interface SpanSource {
  readonly tracer: Tracer;
  readonly ids: SpanIdSource;
}

/**
 * Creates a function that starts the span of a request as the root of a new trace. Clients of a public gateway must
 * not choose its ids, nor whether it records (W3C Trace Context, "Restart trace"). The client's own trace becomes a
 * link, whatever its flags. `attemptSpans`: whether attempts get their own spans.
 *
 * The SDK's span is created when the request has ended, with its real times. Until then only the ids are needed, and
 * the spans of several requests can be created together.
 */
export function createRequestSpans(
  source: SpanSource,
  { attemptSpans }: { readonly attemptSpans: boolean },
): (start: RequestSpanStart) => RequestSpan {
  const collaborators = {
    ...source,
    timestamps: new UtcTimestamps(),
    attemptSpans,
  };
  return (start) => new DeferredRequestSpan(start, collaborators);
}

interface RequestSpanCollaborators extends SpanSource {
  readonly timestamps: UtcTimestamps;
  readonly attemptSpans: boolean;
}

class DeferredRequestSpan implements RequestSpan {
  readonly traceparent: string;
  readonly #ids: SpanIds;
  readonly #start: RequestSpanStart;
  readonly #collaborators: RequestSpanCollaborators;
  readonly #clock = new AnchoredClock();
  #attempts: EndedAttempt[] | null = null;
  #failedAttempts: { readonly facts: FailedAttempt; readonly epochMs: number }[] | null = null;
  #isEnded = false;

  constructor(start: RequestSpanStart, collaborators: RequestSpanCollaborators) {
    this.#start = start;
    this.#collaborators = collaborators;
    this.#ids = collaborators.ids.drawIds();
    this.traceparent = toTraceparent(this.#ids, '01');
  }

  get traceId(): string {
    return this.#ids.traceId;
  }

  get startedEpochMs(): number {
    return this.#clock.startedEpochMs;
  }

  get startedAt(): string {
    return this.#collaborators.timestamps.toText(this.startedEpochMs);
  }

  startAttempt(start: AttemptStart): AttemptSpan {
    const { attemptSpans, ids } = this.#collaborators;
    if (!attemptSpans) return { traceparent: this.traceparent, end: () => undefined };
    const own = { traceId: this.traceId, spanId: ids.drawSpanId() };
    const startedEpochMs = this.#clock.epochMs();
    let isEnded = false;
    return {
      traceparent: toTraceparent(own, '01'),
      end: (result) => {
        if (isEnded) return;
        isEnded = true;
        this.#attempts ??= [];
        const endedEpochMs = this.#clock.epochMs();
        this.#attempts.push({ start, result, ids: own, startedEpochMs, endedEpochMs });
      },
    };
  }

  addFailedAttempt(facts: FailedAttempt): void {
    this.#failedAttempts ??= [];
    this.#failedAttempts.push({ facts, epochMs: this.#clock.epochMs() });
  }

  end(record: RequestRecord, http: HttpFacts): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { tracer, ids } = this.#collaborators;
    const { method, route, incomingTraceparent } = this.#start;
    const { startedEpochMs } = this;
    ids.assign(this.#ids);
    const span = tracer.startSpan(
      `${method} ${route}`,
      { kind: SpanKind.SERVER, startTime: startedEpochMs, links: toLinks(incomingTraceparent) },
      ROOT_CONTEXT,
    );
    for (const attempt of this.#attempts ?? []) recordAttemptSpan(this.#collaborators, span, attempt);
    for (const { facts, epochMs } of this.#failedAttempts ?? []) addFailedAttempt(span, facts, epochMs);
    Object.assign(span, { attributes: toRecordAttributes(record, http) });
    if (toErrorType(record) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(startedEpochMs + record.e2e_ms);
  }
}

/** Wall-clock times that advance monotonically from a start, so that a change of the system clock has no effect. */
class AnchoredClock {
  readonly startedEpochMs = Date.now();
  readonly #startedMs = performance.now();

  epochMs(): number {
    return this.startedEpochMs + performance.now() - this.#startedMs;
  }
}

function addFailedAttempt(span: Span, facts: FailedAttempt, epochMs: number): void {
  const { attempt, replica, code, status, durationMs } = facts;
  const attributes = {
    [FAILED_ATTEMPT.attempt]: attempt,
    [FAILED_ATTEMPT.replica]: replica,
    [FAILED_ATTEMPT.errorType]: code,
    ...(status === undefined ? {} : { [FAILED_ATTEMPT.httpResponseStatusCode]: status }),
    [FAILED_ATTEMPT.durationMs]: durationMs,
  };
  span.addEvent(FAILED_ATTEMPT.event, attributes, epochMs);
}

function toLinks(traceparent: string | undefined): Link[] {
  const context = traceparent === undefined ? null : parseTraceParent(traceparent);
  return context === null ? [] : [{ context: { ...context, isRemote: true } }];
}
