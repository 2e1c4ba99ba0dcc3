import { type Context, SpanKind, trace } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { TelemetryLog } from '#otel/base';
import type { RecordConsumer } from '#otel/queue';
import { type RecordLayout, recordFactsOf, SpanEncoder } from '#otel/record';
import { SCOPE_NAME } from '#otel/record/registry';

/**
 * Takes the spans of requests from the SDK. It encodes each at once, so that no batch stalls the event loop, and gives
 * it to the consumer with its record. Never throws: the SDK would pass the error on to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #consumer: RecordConsumer;
  readonly #log: TelemetryLog;
  readonly #encoder: SpanEncoder;

  /** All spans below a request's span, by each of its spans, which is the same object when it starts and when it ends. */
  readonly #children = new WeakMap<object, ReadableSpan[]>();

  /** `layout`: of the spans of requests. */
  constructor(consumer: RecordConsumer, log: TelemetryLog, layout?: RecordLayout) {
    this.#consumer = consumer;
    this.#log = log;
    this.#encoder = new SpanEncoder(layout);
  }

  /** Collects the spans of operations and attempts. They are encoded together with their request's span. */
  onStart(span: ReadableSpan, parent: Context): void {
    const parentSpan = trace.getSpan(parent);
    if (!isChild(span) || parentSpan === undefined) return;
    const children = this.#children.get(parentSpan) ?? [];
    children.push(span);
    this.#children.set(parentSpan, children).set(span, children);
  }

  onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name !== SCOPE_NAME || isChild(span)) return;
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
      const children = this.#children.get(span)?.filter(({ ended }) => ended) ?? [];
      return this.#encoder.encode(span, children);
    } catch {
      return null;
    }
  }

  /** The export loop alone decides when a batch is sent; only shutdown hurries it. */
  async forceFlush(): Promise<void> {}

  /** The export loop is stopped before the SDK is: nothing is left to do here. */
  async shutdown(): Promise<void> {}
}

/** The only CLIENT spans of the gateway are operations and attempts. */
function isChild(span: ReadableSpan): boolean {
  return span.kind === SpanKind.CLIENT;
}
