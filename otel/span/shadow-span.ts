import {
  type Attributes,
  type Link,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { SHADOW } from '#otel/record/registry';
import { parseTraceparent } from './incoming-context.ts';

/** One copy of a request at a shadow, which has ended. No text. Null: unknown. */
export interface ShadowSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** The trace context that the primary got. */
  readonly primaryTraceparent: string;
  readonly requestId: string;
  readonly startEpochMs: number;
  readonly durationMs: number;
  readonly shadow: string;
  readonly primary: string;
  readonly model: string;
  readonly endpoint: string;
  /** Null: there was no answer. */
  readonly status: number | null;
  readonly outcome: 'ok' | 'error' | 'cut' | 'not_connected';
  readonly firstTokenMs: number | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly finish: string | null;
  /** Its part of the GPU time of the shadow; null: the replica has no `gpu_count`. */
  readonly gpuSeconds: number | null;
  /** Whether it is the second copy of a request, sent because the outputs differ. */
  readonly isAgain: boolean;
}

/** Records the span of a copy. `tracer`: gives it its ids. */
export function recordShadowSpan(tracer: Tracer, copy: ShadowSpan): void {
  const { startEpochMs, durationMs, outcome } = copy;
  const options = {
    kind: SpanKind.CLIENT,
    root: true,
    startTime: startEpochMs,
    links: toLinks(copy),
    attributes: toAttributes(copy),
  };
  const span = tracer.startSpan('gateway.shadow', options, ROOT_CONTEXT);
  if (outcome === 'error' || outcome === 'not_connected') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(startEpochMs + durationMs);
}

function toLinks({ primaryTraceparent }: ShadowSpan): Link[] {
  const context = parseTraceparent(primaryTraceparent);
  return context === null ? [] : [{ context }];
}

function toAttributes(copy: ShadowSpan): Attributes {
  const given: Record<string, string | number | boolean | null> = {
    [SHADOW.shadowReplica]: copy.shadow,
    [SHADOW.shadowPrimary]: copy.primary,
    [SHADOW.shadowModel]: copy.model,
    [SHADOW.shadowRequestId]: copy.requestId,
    [SHADOW.shadowOutcome]: copy.outcome,
    [SHADOW.httpRoute]: copy.endpoint,
    [SHADOW.httpResponseStatusCode]: copy.status,
    [SHADOW.shadowFirstTokenMs]: copy.firstTokenMs,
    [SHADOW.shadowPromptTokens]: copy.promptTokens,
    [SHADOW.shadowCompletionTokens]: copy.completionTokens,
    [SHADOW.shadowFinishReason]: copy.finish,
    [SHADOW.shadowGpuSeconds]: copy.gpuSeconds,
    [SHADOW.shadowAgain]: copy.isAgain || null,
  };
  const entries = Object.entries(given).filter(
    (entry): entry is [string, string | number | boolean] => entry[1] !== null,
  );
  return Object.fromEntries(entries);
}
