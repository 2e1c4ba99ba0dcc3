import { resourceFromAttributes } from '@opentelemetry/resources';
import type { RecordConsumer } from '../queue/record-consumer.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import { RecordProcessor } from './record-processor.ts';
import { createRequestSpans, type RequestSpan, type RequestSpanStart } from './request-span.ts';
import { SpanIdSource, toTraceparent } from './trace-ids.ts';
import { startRequestTracer } from './tracer.ts';

/** The settings of the request spans. */
export interface RecorderSettings {
  /** Whether a client's valid traceparent becomes a link of the span. */
  readonly incoming: 'link' | 'ignore';
  /** Whether each attempt at a replica gets its own span. Default: false. */
  readonly attemptSpans?: boolean | undefined;
}

/** Where the recorder sends records and logs errors. */
export interface RecorderCollaborators {
  readonly consumer: RecordConsumer;
  readonly log: TelemetryLog;
}

/** Creates the request spans of one thread that serves requests. Each span becomes a record. */
export interface Recorder {
  /**
   * Starts the span of one request. The gateway always starts a new trace, whatever the client sent. Each span must be
   * ended, or discarded with `discardRequestSpan`.
   */
  startRequestSpan(start: RequestSpanStart): RequestSpan;
  /** Discards a started span: the message was not a valid request, and leaves no record. */
  discardRequestSpan(): void;
  /** Creates a traceparent with new ids and flags 00, for requests that leave no record (GET /v1/models). */
  createUnsampledTraceparent(): string;
  /** Shuts down the SDK. */
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
