import { type Context, SpanKind, trace } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { SCOPE_NAME } from '../encode/attribute-names.ts';
import { SpanEncoder } from '../encode/encode-span.ts';
import { recordFactsOf } from '../encode/record-attributes.ts';
import type { RecordConsumer } from '../queue/record-consumer.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/**
 * Takes the spans of requests from the SDK. It encodes each at once, so that no batch stalls the event loop, and gives
 * it to the consumer with its record. Never throws: the SDK would pass the error on to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #consumer: RecordConsumer;
  readonly #log: TelemetryLog;
  readonly #encoder = new SpanEncoder();

  /** The attempts by their request's span, which is the same object when it starts and when it ends. */
  readonly #attempts = new WeakMap<object, ReadableSpan[]>();

  constructor(consumer: RecordConsumer, log: TelemetryLog) {
    this.#consumer = consumer;
    this.#log = log;
  }

  /** Collects the spans of attempts. They are encoded together with their request's span. */
  onStart(span: ReadableSpan, parent: Context): void {
    const requestSpan = trace.getSpan(parent);
    if (!isAttempt(span) || requestSpan === undefined) return;
    const attempts = this.#attempts.get(requestSpan);
    if (attempts === undefined) this.#attempts.set(requestSpan, [span]);
    else attempts.push(span);
  }

  onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name !== SCOPE_NAME || isAttempt(span)) return;
    const record = recordFactsOf(span.attributes)?.record;
    if (record === undefined) return;
    this.#consumer.number(record);
    const encodedSpan = this.#encode(span);
    this.#consumer.consume({ record, encodedSpan });
    if (encodedSpan === null)
      this.#log.error({ trace_id: span.spanContext().traceId }, 'record could not be encoded');
  }

  #encode(span: ReadableSpan): Uint8Array | null {
    try {
      const attempts = this.#attempts.get(span)?.filter(({ ended }) => ended) ?? [];
      return this.#encoder.encode(span, attempts);
    } catch {
      return null;
    }
  }

  /** The export loop alone decides when a batch is sent; only shutdown hurries it. */
  async forceFlush(): Promise<void> {}

  /** The export loop is stopped before the SDK is: nothing is left to do here. */
  async shutdown(): Promise<void> {}
}

/** The only CLIENT spans of the gateway are attempts. */
function isAttempt(span: ReadableSpan): boolean {
  return span.kind === SpanKind.CLIENT;
}
