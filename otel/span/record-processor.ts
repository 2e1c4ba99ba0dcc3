import { type Context, SpanKind, trace } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { SCOPE_NAME } from '../encode/attribute-names.ts';
import { RecordEncoder } from '../encode/encode-span.ts';
import type { RecordOutlet } from '../queue/record-outlet.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/**
 * Where a request's span leaves the SDK: encoded at once, so that no batch ever stalls the event loop, and handed to
 * the outlet. Never throws: the SDK would pass it on to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #outlet: RecordOutlet;
  readonly #log: TelemetryLog;
  readonly #encoder = new RecordEncoder();

  /** By the request's span, which is the same object when it starts and when it ends. */
  readonly #attempts = new WeakMap<object, ReadableSpan[]>();

  constructor(outlet: RecordOutlet, log: TelemetryLog) {
    this.#outlet = outlet;
    this.#log = log;
  }

  /** Attempts wait for the end of their request's span, and go when it goes. */
  onStart(span: ReadableSpan, parent: Context): void {
    const requestSpan = trace.getSpan(parent);
    if (!isAttempt(span) || requestSpan === undefined) return;
    const attempts = this.#attempts.get(requestSpan);
    if (attempts === undefined) this.#attempts.set(requestSpan, [span]);
    else attempts.push(span);
  }

  onEnd(span: ReadableSpan): void {
    if (span.instrumentationScope.name !== SCOPE_NAME || isAttempt(span)) return;
    const line = this.#encode(span);
    if (line !== undefined) this.#outlet.put(line);
    else {
      this.#outlet.refuse();
      this.#log.error({ trace_id: span.spanContext().traceId }, 'record could not be encoded');
    }
  }

  #encode(span: ReadableSpan): Uint8Array | undefined {
    try {
      const attempts = this.#attempts.get(span)?.filter(({ ended }) => ended) ?? [];
      return this.#encoder.encode(span, attempts);
    } catch {
      return undefined;
    }
  }

  /** The drain loop alone decides when a batch leaves; only shutdown hurries it. */
  async forceFlush(): Promise<void> {}

  /** The drain loop is stopped before the SDK is: nothing is left to do here. */
  async shutdown(): Promise<void> {}
}

/** Of our spans only those of attempts are a client's. */
function isAttempt(span: ReadableSpan): boolean {
  return span.kind === SpanKind.CLIENT;
}
