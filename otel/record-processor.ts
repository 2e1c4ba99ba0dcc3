import { type Context, SpanKind, trace } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { SCOPE_NAME } from './attribute-names.ts';
import type { Clock } from './clock.ts';
import type { DropLog } from './drop-log.ts';
import { encodeRecord } from './encode-span.ts';
import type { ExportCounters } from './export-stats.ts';
import type { RecordQueue } from './queued-record.ts';
import type { TelemetryLog } from './telemetry-log.ts';

/** What the processor fills, and whom it tells. */
export interface RecordProcessorCollaborators {
  readonly queue: RecordQueue;
  readonly counters: ExportCounters;
  readonly clock: Clock;
  readonly log: TelemetryLog;
  readonly dropLog: DropLog;
  /** Called with the line of every record, before it is queued or dropped. */
  readonly onLine: (line: Uint8Array) => void;
  /** Called when a record was queued. */
  readonly onQueued: () => void;
}

/**
 * Where a request's span leaves the SDK: encoded at once, so that no batch ever stalls the event loop, and put
 * into the queue, or dropped and counted if that is full. Never throws: the SDK would pass it on to the request.
 */
export class RecordProcessor implements SpanProcessor {
  readonly #with: RecordProcessorCollaborators;

  /** By the request's span, which is the same object when it starts and when it ends. */
  readonly #attempts = new WeakMap<object, ReadableSpan[]>();

  constructor(collaborators: RecordProcessorCollaborators) {
    this.#with = collaborators;
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
    const { counters, log } = this.#with;
    counters.recorded += 1;
    const line = this.#encode(span);
    if (line === undefined) {
      counters.rejected += 1;
      log.error({ trace_id: span.spanContext().traceId }, 'record could not be encoded');
      return;
    }
    this.#with.onLine(line);
    this.#offer(line);
  }

  #encode(span: ReadableSpan): Uint8Array | undefined {
    try {
      const attempts = this.#attempts.get(span)?.filter(({ ended }) => ended) ?? [];
      return encodeRecord(span, attempts);
    } catch {
      return undefined;
    }
  }

  #offer(line: Uint8Array): void {
    const { queue, counters, clock, dropLog, onQueued } = this.#with;
    if (queue.offer({ line, queuedAtMs: clock.nowMs() })) {
      onQueued();
      return;
    }
    counters.dropped += 1;
    dropLog.dropped();
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
