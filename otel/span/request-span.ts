import {
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type HttpFacts, type RecordLayout, toErrorType, toRecordAttributes } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import { type AttemptSpan, type AttemptStart, type EndedAttempt, recordAttemptSpan } from './attempt-span.ts';
import { addFailedAttempt, type FailedAttempt } from './failed-attempt.ts';
import {
  type IncomingContext,
  parseTraceparent,
  parseTracestate,
  type TraceContextFields,
  toTraceState,
} from './incoming-context.ts';
import { type OperationStart, recordOperationSpan } from './operation-span.ts';
import { continuedFlags, SAMPLED, type SpanIdSource, type SpanIds, toTraceparent } from './trace-ids.ts';
import { UtcTimestamps } from './utc-timestamps.ts';

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
  /** Adds a failed attempt as a span event. */
  addFailedAttempt(facts: FailedAttempt): void;
  /**
   * Numbers the record, and ends the span after its `e2e_ms`. The record enters the queue or is dropped at once. Only
   * the first call counts.
   */
  end(record: RequestRecord, http: HttpFacts): void;
  /** Ends the span without a record, which follows when what this returns is given to `endParkedSpan`. */
  park(): ParkedSpan;
}

/** A span whose record is not known yet. Plain data, which can be sent to another thread and stored as JSON. */
export interface ParkedSpan {
  readonly start: RequestSpanStart;
  readonly ids: SpanIds;
  readonly startedEpochMs: number;
  readonly operation: OperationStart | null;
  readonly lastAttempt: AttemptStart | null;
  readonly attempts: readonly EndedAttempt[] | null;
  readonly failedAttempts: readonly TimedFailure[] | null;
}

interface TimedFailure {
  readonly facts: FailedAttempt;
  readonly epochMs: number;
}

/** The facts of a request that are known when it arrives. */
export interface RequestSpanStart {
  readonly method: 'POST';
  readonly route: string;
  /** Undefined: the client sent none, or it is ignored. */
  readonly incoming?: IncomingContext | undefined;
}

/** A tracer, and the generator of its ids. */
export interface SpanSource {
  readonly tracer: Tracer;
  readonly ids: SpanIdSource;
}

/**
 * Which spans a request has: `server`: its own; `operation`: also one of the inference operation below it; `attempts`:
 * also one of each attempt below that.
 */
export type SpanDepth = 'server' | 'operation' | 'attempts';

/** How the spans of requests are made. */
export interface RequestSpanSettings {
  readonly depth: SpanDepth;
  /** Which names the attributes have. It fits the depth. */
  readonly layout: RecordLayout;
}

/**
 * Creates a function that starts the span of a request. It is the root of a new trace: clients of a public gateway must
 * not choose its ids (W3C Trace Context, "Restart trace"). The client's own trace becomes a link. If the client is
 * trusted, the span is its child instead. The flags of a client never decide whether a request is recorded.
 *
 * The SDK's span is created when the request has ended, with its real times. Until then only the ids are needed, and
 * the spans of several requests can be created together.
 */
export function createRequestSpans(
  source: SpanSource,
  settings: RequestSpanSettings,
): (start: RequestSpanStart) => RequestSpan {
  const collaborators = { ...source, ...settings, timestamps: new UtcTimestamps() };
  return (start) => new DeferredRequestSpan(start, collaborators);
}

/** Makes the span of a request that was parked, on this thread or another one, and ends it after its `e2e_ms`. */
export function endParkedSpan(
  parked: ParkedSpan,
  { record, http }: { readonly record: RequestRecord; readonly http: HttpFacts },
  collaborators: SpanSource & RequestSpanSettings,
  parent = parentOf(parked.start),
): void {
  const { start, ids: own, startedEpochMs, operation, failedAttempts } = parked;
  const { tracer, ids, layout } = collaborators;
  ids.assign(own);
  const span = tracer.startSpan(
    `${start.method} ${start.route}`,
    { kind: SpanKind.SERVER, startTime: startedEpochMs, links: parent === null ? toLinks(start) : [] },
    parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent),
  );
  if (operation !== null) recordChildren(span, { parked, operation, record }, collaborators);
  for (const { facts, epochMs } of failedAttempts ?? []) addFailedAttempt(span, facts, epochMs);
  Object.assign(span, { attributes: toRecordAttributes(record, http, layout) });
  if (toErrorType(record) !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(startedEpochMs + record.e2e_ms);
}

function recordChildren(
  span: Span,
  {
    parked: { lastAttempt, attempts, startedEpochMs },
    operation,
    record,
  }: { readonly parked: ParkedSpan; readonly operation: OperationStart; readonly record: RequestRecord },
  collaborators: SpanSource & RequestSpanSettings,
): void {
  const operationSpan = recordOperationSpan(collaborators, span, {
    ...{ start: operation, record, endedEpochMs: startedEpochMs + record.e2e_ms },
    ...{ attempt: lastAttempt, isInnermost: collaborators.depth === 'operation' },
  });
  for (const attempt of attempts ?? []) recordAttemptSpan(collaborators, operationSpan, attempt);
}

interface RequestSpanCollaborators extends SpanSource, RequestSpanSettings {
  readonly timestamps: UtcTimestamps;
}

class DeferredRequestSpan implements RequestSpan {
  readonly traceparent: string;
  readonly #ids: SpanIds;
  readonly #start: RequestSpanStart;
  readonly #collaborators: RequestSpanCollaborators;
  readonly #clock = new AnchoredClock();
  /** The client's span, if this one is its child. */
  readonly #parent: SpanContext | null;
  readonly #flags: string = SAMPLED;
  #operation: OperationStart | null = null;
  #lastAttempt: AttemptStart | null = null;
  #attempts: EndedAttempt[] | null = null;
  #failedAttempts: TimedFailure[] | null = null;
  #isEnded = false;

  constructor(start: RequestSpanStart, collaborators: RequestSpanCollaborators) {
    const { ids } = collaborators;
    this.#start = start;
    this.#collaborators = collaborators;
    this.#parent = parentOf(start);
    if (this.#parent === null) {
      this.#ids = ids.drawIds();
    } else {
      this.#ids = { traceId: this.#parent.traceId, spanId: ids.drawSpanId() };
      this.#flags = continuedFlags(this.#parent.traceFlags);
    }
    this.traceparent = toTraceparent(this.#ids, this.#flags);
  }

  get traceId(): string {
    return this.#ids.traceId;
  }

  get tracestate(): string | undefined {
    return this.#parent?.traceState?.serialize();
  }

  get startedEpochMs(): number {
    return this.#clock.startedEpochMs;
  }

  get startedAt(): string {
    return this.#collaborators.timestamps.toText(this.startedEpochMs);
  }

  startOperation(): void {
    if (this.#collaborators.depth === 'server') return;
    this.#operation ??= { ids: this.#drawChild(), startedEpochMs: this.#clock.epochMs() };
  }

  startAttempt(start: AttemptStart): AttemptSpan {
    const { depth } = this.#collaborators;
    const { tracestate } = this;
    const operation = this.#operation;
    if (operation === null) return { traceparent: this.traceparent, tracestate, end: ignore };
    this.#lastAttempt = start;
    if (depth === 'operation') {
      return { traceparent: toTraceparent(operation.ids, this.#flags), tracestate, end: ignore };
    }
    const own = this.#drawChild();
    const startedEpochMs = this.#clock.epochMs();
    let isEnded = false;
    return {
      traceparent: toTraceparent(own, this.#flags),
      tracestate,
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
    if (!this.#isEnded) endParkedSpan(this.park(), { record, http }, this.#collaborators, this.#parent);
  }

  park(): ParkedSpan {
    this.#isEnded = true;
    return {
      start: this.#start,
      ids: this.#ids,
      startedEpochMs: this.startedEpochMs,
      operation: this.#operation,
      lastAttempt: this.#lastAttempt,
      attempts: this.#attempts,
      failedAttempts: this.#failedAttempts,
    };
  }

  #drawChild(): SpanIds {
    return { traceId: this.traceId, spanId: this.#collaborators.ids.drawSpanId() };
  }
}

const ignore = (): void => undefined;

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
