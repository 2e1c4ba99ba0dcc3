import { context, ROOT_CONTEXT, type Tracer, trace } from '@opentelemetry/api';
import { getBooleanFromEnv } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import {
  AlwaysOnSampler,
  type IdGenerator,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { SCHEMA_URL, SCOPE_NAME } from '#otel/record/registry';

/** The tracer of the request spans, and the shutdown of its SDK. */
export interface RequestTracer {
  readonly tracer: Tracer;
  shutdown(): Promise<void>;
}

/**
 * Limits above everything a record can hold. They are passed explicitly, because OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT and
 * similar variables would otherwise cut fields. otel/record/attributes.ts has its own limits.
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
 * Starts the OpenTelemetry SDK for spans only: no metric reader, log processor, instrumentation, or detection of host
 * and command line. Every span is recorded and sampled, whatever OTEL_TRACES_SAMPLER says.
 */
export function startRequestTracer(options: {
  readonly resource: Resource;
  readonly idGenerator: IdGenerator;
  readonly spanProcessor: SpanProcessor;
}): RequestTracer {
  const { resource, idGenerator, spanProcessor } = options;
  const tracing = {
    resource,
    idGenerator,
    sampler: new AlwaysOnSampler(),
    spanLimits: SPAN_LIMITS,
    spanProcessors: [spanProcessor],
  };
  // OTEL_SDK_DISABLED turns NodeSDK off, but it must not turn off the request records.
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) {
    const provider = new TracerProvider(tracing);
    return { tracer: getRequestTracer(provider), shutdown: () => provider.shutdown() };
  }
  const sdk = new NodeSDK({
    ...tracing,
    autoDetectResources: false,
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [],
    textMapPropagator: null,
    contextManager: NO_CONTEXT_MANAGER,
  });
  return { tracer: withoutGlobals(() => sdk.start()), shutdown: () => sdk.shutdown() };
}

/**
 * NodeSDK provides its tracer only through the API's globals, and the first registration wins. The globals are cleared
 * before and after, so that each gateway in a process has its own tracer and no other code gets it.
 */
function withoutGlobals(start: () => void): Tracer {
  trace.disable();
  start();
  const tracer = getRequestTracer(trace.getTracerProvider());
  trace.disable();
  context.disable();
  return tracer;
}

function getRequestTracer(provider: Pick<TracerProvider, 'getTracer'>): Tracer {
  return provider.getTracer(SCOPE_NAME, undefined, { schemaUrl: SCHEMA_URL });
}

/** Contexts are passed explicitly. AsyncLocalStorage would slow down every await for no benefit. */
const NO_CONTEXT_MANAGER: NonNullable<ConstructorParameters<typeof NodeSDK>[0]>['contextManager'] & object = {
  active: () => ROOT_CONTEXT,
  with: (_context, run, thisArg, ...args) => run.call(thisArg, ...args),
  bind: (_context, target) => target,
  enable: () => NO_CONTEXT_MANAGER,
  disable: () => NO_CONTEXT_MANAGER,
};
