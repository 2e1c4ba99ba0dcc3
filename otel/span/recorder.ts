import type { Log } from '#otel/base';
import type { RecordConsumer } from '#otel/queue';
import { type Dialects, type HttpFacts, readGenAiNames } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import {
  type IncomingContext,
  parseTraceparent,
  parseTracestate,
  type TraceContextFields,
} from './incoming-context.ts';
import { RecordProcessor } from './record-processor.ts';
import {
  createRequestSpans,
  endParkedSpan,
  type ParkedSpan,
  type RequestSpan,
  type RequestSpanSettings,
  type RequestSpanStart,
  type SpanDepth,
} from './request-span.ts';
import { RandomIds, toTraceparent } from './trace-ids.ts';
import { startTracer } from './tracer.ts';

/** `sampled` and `random` (W3C Trace Context level 2). */
const KNOWN_FLAGS = 3;

/** The settings of the request spans. */
export interface RecorderSettings {
  /**
   * What a client's valid traceparent becomes: the parent of the span if the client is trusted, else a link; always a
   * link; nothing.
   */
  readonly incoming: 'continue' | 'link' | 'ignore';
  /** Default: server. */
  readonly spans?: SpanDepth | undefined;
  /** Default: none. */
  readonly dialects?: readonly (keyof Dialects)[] | undefined;
}

/** Where the recorder sends records and logs errors. */
export interface RecorderCollaborators {
  readonly consumer: RecordConsumer;
  readonly log: Log;
}

/** Creates the request spans of one thread that serves requests. Each span becomes a record. */
export interface Recorder {
  /**
   * Starts the span of one request, in a new trace unless it continues that of a trusted client. Each span must be ended,
   * or discarded with `discardRequestSpan`.
   */
  startRequestSpan(start: RequestSpanStart): RequestSpan;
  /** Discards a started span: the message was not a valid request, or its record is made on another thread. */
  discardRequestSpan(): void;
  /**
   * The trace context of a request that leaves no record (GET /v1/models): that of a trusted client if traces are
   * continued, else new ids and flags 00.
   */
  createUnrecordedContext(incoming: IncomingContext | undefined): TraceContextFields;
  /** Shuts down the SDK. */
  shutdown(): Promise<void>;
}

/**
 * Creates what ends spans that were parked, on this thread or another one: the record is as that of any other span. It
 * needs no SDK to run.
 */
export function createParkedSpanEnder(
  settings: Pick<RecorderSettings, 'spans' | 'dialects'>,
  { consumer, log }: RecorderCollaborators,
): (parked: ParkedSpan, record: RequestRecord, http: HttpFacts) => void {
  const processor = new RecordProcessor(consumer, log);
  const spanSettings = toSpanSettings(settings, consumer);
  return (parked, record, http) => endParkedSpan(parked, { record, http }, processor, spanSettings);
}

/** Starts the OpenTelemetry SDK of a thread that serves requests. */
export function startRecorder(
  { incoming, ...settings }: RecorderSettings,
  { consumer, log }: RecorderCollaborators,
): Recorder {
  const ids = new RandomIds();
  const processor = new RecordProcessor(consumer, log);
  const { tracer, shutdown } = startTracer(processor, ids);
  const startSpan = createRequestSpans(tracer, toSpanSettings(settings, consumer));
  return {
    startRequestSpan(start) {
      consumer.begin();
      return startSpan(incoming === 'ignore' ? { ...start, incoming: undefined } : start);
    },
    discardRequestSpan: () => consumer.discard(),
    createUnrecordedContext(context) {
      const passed = context?.isTrusted === true ? toPassedContext(context) : null;
      if (passed !== null) return passed;
      const own = { traceId: ids.generateTraceId(), spanId: ids.generateSpanId() };
      return { traceparent: toTraceparent(own, '00'), tracestate: undefined };
    },
    shutdown,
  };
}

function toSpanSettings(
  { spans = 'server', dialects = [] }: Pick<RecorderSettings, 'spans' | 'dialects'>,
  consumer: RecordConsumer,
): RequestSpanSettings {
  return {
    depth: spans,
    genAi: readGenAiNames(),
    dialects: dialects.length === 0 ? null : toDialects(dialects),
    number: (record) => consumer.number(record),
  };
}

function toDialects(names: readonly (keyof Dialects)[]): Dialects {
  const has = (name: keyof Dialects) => names.includes(name);
  return {
    langfuse: has('langfuse'),
    openinference: has('openinference'),
    signoz: has('signoz'),
    datadog: has('datadog'),
  };
}

/** The client's context as it goes on where the gateway has no span; null if it is not valid. */
function toPassedContext({ traceparent, tracestate = '' }: IncomingContext): TraceContextFields | null {
  const context = parseTraceparent(traceparent);
  if (context === null) return null;
  const flags = (context.traceFlags & KNOWN_FLAGS).toString(16).padStart(2, '0');
  return { traceparent: toTraceparent(context, flags), tracestate: parseTracestate(tracestate) };
}
