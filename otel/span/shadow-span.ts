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

/** One copy of a request at a shadow, which has ended. Null: unknown. */
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
  readonly status: number | null;
  readonly outcome: string;
  readonly firstTokenMs: number | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly finish: string | null;
  readonly gpuSeconds: number | null;
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
