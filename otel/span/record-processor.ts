import { SpanKind } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Log } from '#otel/base';
import { SpanEncoder } from '#otel/otlp';
import type { RecordConsumer } from '#otel/queue';
import { toRecord } from '#otel/record';

/**
 * Takes the spans of requests from the SDK. It encodes each at once, so that no batch stalls the event loop, and gives
 * it to the consumer with its record. Never throws: the SDK would pass the error on to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #consumer: RecordConsumer;
  readonly #log: Log;
  readonly #encoder = new SpanEncoder();
  /** The ended spans of the request that ends now: they end just before its own, and are encoded together with it. */
  #below: ReadableSpan[] = [];

  constructor(consumer: RecordConsumer, log: Log) {
    this.#consumer = consumer;
    this.#log = log;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    // The only CLIENT spans of the gateway are operations and attempts.
    if (span.kind === SpanKind.CLIENT) {
      this.#below.push(span);
      return;
    }
    const below = this.#below;
    if (below.length > 0) this.#below = [];
    const record = toRecord(span);
    if (record === null) return;
    const encodedSpan = this.#encode(span, below);
    this.#consumer.consume({ record, encodedSpan });
    if (encodedSpan === null)
      this.#log.error({ trace_id: span.spanContext().traceId }, 'record could not be encoded');
  }

  #encode(span: ReadableSpan, below: readonly ReadableSpan[]): Uint8Array | null {
    try {
      return this.#encoder.encode(span, below);
    } catch {
      return null;
    }
  }

  /** The export loop alone decides when a batch is sent; only shutdown hurries it. */
  async forceFlush(): Promise<void> {}

  /** The export loop is stopped by itself: nothing is left to do here. */
  async shutdown(): Promise<void> {}
}
