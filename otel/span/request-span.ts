import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { SpanProcessor } from '@opentelemetry/sdk-trace';
import { toErrorType } from '#otel/outcome';
import {
  addFailedAttempts,
  type Dialects,
  type GenAiNames,
  type HttpFacts,
  toRequestAttributes,
} from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import {
  type AttemptSpan,
  type AttemptStart,
  type EndedAttempt,
  endAttemptSpan,
  endOperationSpan,
  startAttemptSpan,
  startOperationSpan,
} from './child-spans.ts';
import {
  type IncomingContext,
  parseTraceparent,
  parseTracestate,
  type TraceContextFields,
  toTraceState,
} from './incoming-context.ts';
import { continuedFlags, KnownIds, SAMPLED, type SpanIds, toTraceparent } from './trace-ids.ts';
import { createTracer } from './tracer.ts';

/**
 * The span of one proxied request, and its trace context. Each attempt sends its own upstream, which equals this one
 * without further spans. `tracestate`: the client's, if its trace is continued.
 */
export interface RequestSpan extends TraceContextFields {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** When the request arrived: epoch milliseconds. */
  readonly startedEpochMs: number;
  /** The same time as RFC 3339 in UTC. */
  readonly startedAt: string;
  /** The gateway begins to look for a replica: the span of the operation begins, if there is to be one. */
  startOperation(): void;
  /** Begins an attempt. End it before the request. */
  startAttempt(start: AttemptStart): AttemptSpan;
  /**
   * Numbers the record, and ends the span after its `e2e_ms`. The record enters the queue or is dropped at once. Only
   * the first call counts.
   */
  end(record: RequestRecord, http: HttpFacts): void;
  /** Gives the span up for one that `endParkedSpan` makes of what this returns, when its record is known. */
  park(): ParkedSpan;
}

/** A span whose record is not known yet. Plain data, which can be sent to another thread and stored as JSON. */
export interface ParkedSpan {
  readonly start: RequestSpanStart;
  readonly ids: SpanIds;
  readonly startedEpochMs: number;
  readonly operation: { readonly ids: SpanIds; readonly startedEpochMs: number } | null;
  readonly lastAttempt: AttemptStart | null;
  readonly attempts: readonly (EndedAttempt & { readonly ids: SpanIds })[];
}

/** The facts of a request that are known when it arrives. */
export interface RequestSpanStart {
  readonly method: 'POST';
  readonly route: string;
  /** Undefined: the client sent none, or it is ignored. */
  readonly incoming?: IncomingContext | undefined;
}

/**
 * Which spans a request has: `server`: its own; `operation`: also one of the inference operation below it; `attempts`:
 * also one of each attempt below that.
 */
export type SpanDepth = 'server' | 'operation' | 'attempts';

/** How the spans of requests are made. */
export interface RequestSpanSettings {
  readonly depth: SpanDepth;
  /** Which names of GenAI's conventions the attributes have. */
  readonly genAi: GenAiNames;
  /** Which names of backends they have, too. Default: none. */
  readonly dialects?: Dialects | null;
  /** Numbers a record before it becomes attributes. */
  readonly number: (record: RequestRecord) => void;
}

/**
 * Creates a function that starts the span of a request. It is the root of a new trace: clients of a public gateway must
 * not choose its ids (W3C Trace Context, "Restart trace"). The client's own trace becomes a link. If the client is
 * trusted, the span is its child instead. The flags of a client never decide whether a request is recorded.
 */
export function createRequestSpans(
  tracer: Tracer,
  settings: RequestSpanSettings,
): (start: RequestSpanStart) => RequestSpan {
  const timestamps = new UtcTimestamps();
  return (start) => new TracedRequestSpan(start, tracer, settings, timestamps);
}

/** Makes the spans of a request that was parked, on this thread or another one, and ends them with its record. */
export function endParkedSpan(
  { start, ids, startedEpochMs, operation, lastAttempt, attempts }: ParkedSpan,
  { record, http }: { readonly record: RequestRecord; readonly http: HttpFacts },
  processor: SpanProcessor,
  settings: RequestSpanSettings,
): void {
  const spanIds = [ids, ...(operation === null ? [] : [operation.ids]), ...attempts.map((each) => each.ids)];
  const tracer = createTracer(
    processor,
    new KnownIds(
      ids.traceId,
      spanIds.map(({ spanId }) => spanId),
    ),
  );
  const request = startServerSpan(tracer, start, parentOf(start), startedEpochMs);
  const operationSpan =
    operation === null ? null : startOperationSpan(tracer, request, operation.startedEpochMs);
  const ended = attempts.map((attempt) => ({
    ...attempt,
    span: startAttemptSpan(tracer, operationSpan ?? request, attempt.start, attempt.startedEpochMs),
  }));
  const spans = { request, operation: operationSpan, lastAttempt, attempts: ended };
  endSpans(spans, { record, http, startedEpochMs }, settings);
}

/** The spans of a request that has ended. */
interface OpenSpans {
  readonly request: Span;
  readonly operation: Span | null;
  readonly lastAttempt: AttemptStart | null;
  readonly attempts: readonly (EndedAttempt & { readonly span: Span })[];
}

/** Ends the spans of a request, its own last: our processor takes those that end before it as those below it. */
function endSpans(
  { request, operation, lastAttempt, attempts }: OpenSpans,
  {
    record,
    http,
    startedEpochMs,
  }: { readonly record: RequestRecord; readonly http: HttpFacts; readonly startedEpochMs: number },
  { depth, genAi, dialects = null, number }: RequestSpanSettings,
): void {
  number(record);
  const endedEpochMs = startedEpochMs + record.e2e_ms;
  if (operation !== null) {
    const isInnermost = depth === 'operation';
    endOperationSpan(operation, {
      record,
      http,
      genAi,
      dialects,
      attempt: lastAttempt,
      isInnermost,
      endedEpochMs,
    });
  }
  for (const attempt of attempts) endAttemptSpan(attempt.span, attempt);
  addFailedAttempts(request, record, startedEpochMs);
  // As the attributes of a span that nobody else has. `setAttributes` checks each value again and costs 5 µs, as much as
  // all else that a span and its encoding take (docs/decisions/0021).
  Object.assign(request, {
    attributes: toRequestAttributes(record, http, operation === null ? genAi : null, dialects),
  });
  if (toErrorType(record) !== undefined) request.setStatus({ code: SpanStatusCode.ERROR });
  request.end(endedEpochMs);
}

function startServerSpan(
  tracer: Tracer,
  start: RequestSpanStart,
  parent: SpanContext | null,
  startTime: number,
): Span {
  const context: Context = parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const links = parent === null ? toLinks(start) : [];
  return tracer.startSpan(
    `${start.method} ${start.route}`,
    { kind: SpanKind.SERVER, startTime, links },
    context,
  );
}

class TracedRequestSpan implements RequestSpan {
  readonly traceparent: string;
  readonly #span: Span;
  readonly #flags: string;
  readonly #start: RequestSpanStart;
  readonly #tracer: Tracer;
  readonly #settings: RequestSpanSettings;
  readonly #timestamps: UtcTimestamps;
  readonly #clock = new AnchoredClock();
  #operation: { readonly span: Span; readonly startedEpochMs: number } | null = null;
  #lastAttempt: AttemptStart | null = null;
  #attempts: (EndedAttempt & { readonly span: Span })[] = NO_ATTEMPTS;
  #isEnded = false;

  constructor(
    start: RequestSpanStart,
    tracer: Tracer,
    settings: RequestSpanSettings,
    timestamps: UtcTimestamps,
  ) {
    this.#start = start;
    this.#tracer = tracer;
    this.#settings = settings;
    this.#timestamps = timestamps;
    const parent = parentOf(start);
    this.#span = startServerSpan(tracer, start, parent, this.startedEpochMs);
    this.#flags = parent === null ? SAMPLED : continuedFlags(parent.traceFlags);
    this.traceparent = toTraceparent(this.#span.spanContext(), this.#flags);
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get tracestate(): string | undefined {
    return this.#span.spanContext().traceState?.serialize();
  }

  get startedEpochMs(): number {
    return this.#clock.startedEpochMs;
  }

  get startedAt(): string {
    return this.#timestamps.toText(this.startedEpochMs);
  }

  startOperation(): void {
    if (this.#settings.depth === 'server' || this.#operation !== null) return;
    const startedEpochMs = this.#clock.epochMs();
    const span = startOperationSpan(this.#tracer, this.#span, startedEpochMs);
    this.#operation = { span, startedEpochMs };
  }

  startAttempt(start: AttemptStart): AttemptSpan {
    if (this.#operation === null) return this.#toAttempt(this.#span, ignore);
    this.#lastAttempt = start;
    const operation = this.#operation.span;
    if (this.#settings.depth === 'operation') return this.#toAttempt(operation, ignore);
    const startedEpochMs = this.#clock.epochMs();
    const span = startAttemptSpan(this.#tracer, operation, start, startedEpochMs);
    let isEnded = false;
    return this.#toAttempt(span, (result) => {
      if (isEnded) return;
      isEnded = true;
      const attempt = { span, start, result, startedEpochMs, endedEpochMs: this.#clock.epochMs() };
      this.#attempts = [...this.#attempts, attempt];
    });
  }

  #toAttempt(span: Span, end: AttemptSpan['end']): AttemptSpan {
    const { tracestate } = this;
    return { traceparent: toTraceparent(span.spanContext(), this.#flags), tracestate, end };
  }

  end(record: RequestRecord, http: HttpFacts): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const operation = this.#operation?.span ?? null;
    const spans = {
      request: this.#span,
      operation,
      lastAttempt: this.#lastAttempt,
      attempts: this.#attempts,
    };
    endSpans(spans, { record, http, startedEpochMs: this.startedEpochMs }, this.#settings);
  }

  park(): ParkedSpan {
    this.#isEnded = true;
    const operation = this.#operation;
    return {
      start: this.#start,
      ids: toIds(this.#span),
      startedEpochMs: this.startedEpochMs,
      operation:
        operation === null ? null : { ids: toIds(operation.span), startedEpochMs: operation.startedEpochMs },
      lastAttempt: this.#lastAttempt,
      attempts: this.#attempts.map(({ span, ...attempt }) => ({ ...attempt, ids: toIds(span) })),
    };
  }
}

const NO_ATTEMPTS: never[] = [];

const ignore = (): void => undefined;

function toIds(span: Span): SpanIds {
  const { traceId, spanId } = span.spanContext();
  return { traceId, spanId };
}

/** The span of the client if this one is its child. */
function parentOf({ incoming }: RequestSpanStart): SpanContext | null {
  return incoming?.isTrusted === true ? toParent(incoming) : null;
}

/** The client's span as a link. */
function toLinks({ incoming }: RequestSpanStart): Link[] {
  if (incoming === undefined) return [];
  const context = parseTraceparent(incoming.traceparent);
  return context === null ? [] : [{ context }];
}

/** The span of the client; null if its context is not valid. A tracestate that is not valid is left out. */
function toParent({ traceparent, tracestate }: IncomingContext): SpanContext | null {
  const context = parseTraceparent(traceparent);
  const state = context === null || tracestate === undefined ? undefined : parseTracestate(tracestate);
  return context === null || state === undefined ? context : { ...context, traceState: toTraceState(state) };
}

/** Wall-clock times that advance monotonically from a start, so that a change of the system clock has no effect. */
class AnchoredClock {
  readonly startedEpochMs = Date.now();
  readonly #startedMs = performance.now();

  epochMs(): number {
    return this.startedEpochMs + performance.now() - this.#startedMs;
  }
}

/**
 * Formats times as RFC 3339 in UTC with milliseconds. Date takes 1.4 µs to format a time. Here it does so once per
 * second, because the requests of one second differ only in their milliseconds.
 */
export class UtcTimestamps {
  #second = Number.NaN;
  /** `2026-11-21T08:00:00.` */
  #secondText = '';

  /** `epochMs`: whole milliseconds. */
  toText(epochMs: number): string {
    const second = Math.floor(epochMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    }
    return `${this.#secondText}${String(epochMs - second * 1000).padStart(3, '0')}Z`;
  }
}
