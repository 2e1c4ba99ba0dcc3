import type { Tracer } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  type IdGenerator,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { SCOPE } from '#otel/record/registry';

/**
 * Limits above everything a record can hold. They are passed explicitly, because OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT and
 * similar variables would otherwise cut fields. otel/record/attribute-values.ts has its own limits.
 */
const SPAN_LIMITS = {
  attributeCountLimit: 1024,
  attributeValueLengthLimit: Number.POSITIVE_INFINITY,
  eventCountLimit: 1024,
  linkCountLimit: 16,
  attributePerEventCountLimit: 64,
  attributePerLinkCountLimit: 64,
};

/**
 * Creates the SDK's tracer of request spans. Every span is recorded and sampled, whatever OTEL_TRACES_SAMPLER and
 * OTEL_SDK_DISABLED say. It is registered nowhere: each gateway in a process has its own, and no other code gets it.
 */
export function createTracer(spanProcessor: SpanProcessor, idGenerator: IdGenerator): Tracer {
  const provider = new TracerProvider({
    // The batches of the export have the resource: no span is sent with its own.
    resource: resourceFromAttributes({}),
    idGenerator,
    sampler: new AlwaysOnSampler(),
    spanLimits: SPAN_LIMITS,
    spanProcessors: [spanProcessor],
  });
  return provider.getTracer(SCOPE.name, undefined, SCOPE);
}
