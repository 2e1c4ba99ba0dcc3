import { type Context, SpanKind, trace } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { SCOPE_NAME } from '../encode/attribute-names.ts';
import { RecordEncoder } from '../encode/encode-span.ts';
import type { RecordOutlet } from '../queue/record-outlet.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/**
 * Encodes each request's span when it ends and passes it to the outlet. Spans are encoded one at a time, so that no
 * batch stalls the event loop. Never throws, because the SDK would pass the error to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #outlet: RecordOutlet;
  readonly #log: TelemetryLog;
  readonly #encoder = new RecordEncoder();

  /** The attempts by their request's span, which is the same object when it starts and when it ends. */
  readonly #attempts = new WeakMap<object, ReadableSpan[]>();

  constructor(outlet: RecordOutlet, log: TelemetryLog) {
    this.#outlet = outlet;
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
    const encodedSpan = this.#encode(span);
    if (encodedSpan !== undefined) this.#outlet.put(encodedSpan);
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

  /** Does nothing: only the drain loop and its shutdown decide when a batch is exported. */
  async forceFlush(): Promise<void> {}

  /** Does nothing: the drain loop has stopped before the SDK. */
  async shutdown(): Promise<void> {}
}

/** The only CLIENT spans of the gateway are attempts. */
function isAttempt(span: ReadableSpan): boolean {
  return span.kind === SpanKind.CLIENT;
}
