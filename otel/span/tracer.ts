import { context, ROOT_CONTEXT, type Tracer, trace } from '@opentelemetry/api';
import { getBooleanFromEnv } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
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

/** A tracer, and the shutdown of its SDK. */
export interface StartedTracer {
  readonly tracer: Tracer;
  shutdown(): Promise<void>;
}

/**
 * Starts the OpenTelemetry SDK of a thread for spans only: no metric reader, log processor, instrumentation, or detection
 * of host and command line. Every span is recorded and sampled, whatever OTEL_TRACES_SAMPLER says.
 */
export function startTracer(spanProcessor: SpanProcessor, idGenerator: IdGenerator): StartedTracer {
  // OTEL_SDK_DISABLED turns NodeSDK off, but it must not turn off the request records.
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) {
    return { tracer: createTracer(spanProcessor, idGenerator), shutdown: async () => undefined };
  }
  const sdk = new NodeSDK({
    ...toTracing(spanProcessor, idGenerator),
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [],
    textMapPropagator: null,
    contextManager: NO_CONTEXT_MANAGER,
  });
  // NodeSDK provides its tracer through the API's globals alone, where the first one stays. Each gateway of a process
  // takes its own out again, and no other code gets it.
  trace.disable();
  sdk.start();
  const tracer = tracerOf(trace.getTracerProvider());
  trace.disable();
  context.disable();
  return { tracer, shutdown: () => sdk.shutdown() };
}

/** Creates a tracer like that of `startTracer` for some spans only, such as those with ids that are known already. */
export function createTracer(spanProcessor: SpanProcessor, idGenerator: IdGenerator): Tracer {
  return tracerOf(new TracerProvider(toTracing(spanProcessor, idGenerator)));
}

function toTracing(spanProcessor: SpanProcessor, idGenerator: IdGenerator) {
  return {
    // The batches of the export have the resource: no span is sent with its own.
    resource: resourceFromAttributes({}),
    idGenerator,
    sampler: new AlwaysOnSampler(),
    spanLimits: SPAN_LIMITS,
    spanProcessors: [spanProcessor],
  };
}

function tracerOf(provider: Pick<TracerProvider, 'getTracer'>): Tracer {
  return provider.getTracer(SCOPE.name, undefined, SCOPE);
}

/** Contexts are passed explicitly. AsyncLocalStorage would slow down every await for no benefit. */
const NO_CONTEXT_MANAGER: NonNullable<ConstructorParameters<typeof NodeSDK>[0]>['contextManager'] & object = {
  active: () => ROOT_CONTEXT,
  with: (_context, run, thisArg, ...args) => run.call(thisArg, ...args),
  bind: (_context, target) => target,
  enable: () => NO_CONTEXT_MANAGER,
  disable: () => NO_CONTEXT_MANAGER,
};
