import { resourceFromAttributes } from '@opentelemetry/resources';
import type { RecordConsumer } from '../queue/record-consumer.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import { RecordProcessor } from './record-processor.ts';
import { createRequestSpans, type RequestSpan, type RequestSpanStart } from './request-span.ts';
import { SpanIdSource, toTraceparent } from './trace-ids.ts';
import { startRequestTracer } from './tracer.ts';

/** What is decided of spans before the first request. */
export interface RecorderSettings {
  /** What becomes of a caller's valid traceparent: a link of the span, or nothing. */
  readonly incoming: 'link' | 'ignore';
  /** Whether each attempt at a replica is a span of its own. Default: false. */
  readonly attemptSpans?: boolean | undefined;
}

/** Whom the recorder hands records to, and complains to. */
export interface RecorderCollaborators {
  readonly consumer: RecordConsumer;
  readonly log: TelemetryLog;
}

/** The telemetry of one thread that serves requests: their spans, which become records. */
export interface Recorder {
  /**
   * Starts the span of one request: the gateway always starts the trace, whatever the caller sent. It must end, or
   * be given up by `discardRequestSpan`.
   */
  startRequestSpan(start: RequestSpanStart): RequestSpan;
  /** A request whose span was started was none: it leaves no record. */
  discardRequestSpan(): void;
  /** A traceparent with flags 00 and fresh ids, for requests that leave no record (GET /v1/models). */
  createUnsampledTraceparent(): string;
  /** Ends the SDK. */
  shutdown(): Promise<void>;
}

/** Starts the OpenTelemetry SDK of a thread that serves requests. */
export function startRecorder(
  { incoming, attemptSpans = false }: RecorderSettings,
  { consumer, log }: RecorderCollaborators,
): Recorder {
  const ids = new SpanIdSource();
  const { tracer, shutdown } = startRequestTracer({
    // The batches of the export have the resource: no span is sent with its own.
    resource: resourceFromAttributes({}),
    idGenerator: ids,
    spanProcessor: new RecordProcessor(consumer, log),
  });
  const startRequestSpan = createRequestSpans({ tracer, ids }, { attemptSpans });
  return {
    startRequestSpan(start) {
      consumer.begin();
      const known = incoming === 'link' ? start : { ...start, incomingTraceparent: undefined };
      return startRequestSpan(known);
    },
    discardRequestSpan: () => consumer.discard(),
    createUnsampledTraceparent: () => toTraceparent(ids.drawIds(), '00'),
    shutdown,
  };
}
