import { readFile } from 'node:fs/promises';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { SpanEncoder, toSpanJson } from '#otel/otlp';
import { ExportCounters } from '#otel/queue';
import { RECORD_FIELDS, SCOPE, SEMCONV } from '#otel/record/registry';
import { FULL_RECORD } from '#testkit/records/records.ts';
import { toConditionMetrics } from '../../otel/metrics/condition-metrics.ts';
import { ExportMetrics } from '../../otel/metrics/export-metrics.ts';
import { METRICS } from '../../otel/metrics/metric-names.ts';
import { toGatewayMetrics, toProcessMetrics } from '../../otel/metrics/process-metrics.ts';
import { RecordMetrics } from '../../otel/metrics/record-metrics.ts';
import { toModelMetrics, toReplicaMetrics } from '../../otel/metrics/replica-metrics.ts';
import { toSourceMetrics } from '../../otel/metrics/source-metrics.ts';
import { toVerdictMetrics } from '../../otel/metrics/verdict-metrics.ts';
import type { GenAiNames } from '../../otel/record/attributes.ts';
import { createRequestSpans, type SpanDepth } from '../../otel/span/request-span.ts';
import { attributesOf, type Registry, readRegistry } from '../../scripts/generate/registry.ts';
import { renderAttributes } from '../../scripts/generate/render-attributes.ts';
import {
  renderDashboardFields,
  renderMetricNames,
  renderNames,
  renderRecordSchema,
  renderRecordType,
} from '../../scripts/generate/render-names.ts';
import { renderMetricDocs, renderRecordDocs } from '../../scripts/generate/render-registry-docs.ts';
import { INTERVAL } from './metrics/collected.ts';
import { GATEWAY_SOURCES } from './metrics/gateway-sources.ts';

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
const registry = readRegistry();

const advice = 'run npm run generate';

test('every generated list of the record fields is up to date', async () => {
  expect(await read('otel/record/registry/attribute-names.ts'), advice).toBe(renderNames(registry));
  expect(await read('otel/record/registry/request-record.ts'), advice).toBe(renderRecordType(registry));
  expect(await read('otel/record/record-attributes.ts'), advice).toBe(renderAttributes(registry));
  expect(await read('src/admin/record-schema.ts'), advice).toBe(renderRecordSchema(registry));
  const page = await read('src/admin/dashboard/page/records/record-fields.js');
  expect(page, advice).toBe(renderDashboardFields(registry));
  const docs = await read('docs/record.md');
  expect(docs, advice).toBe(renderRecordDocs(docs, registry));
});

test('the metric names and the tables of docs/metrics.md are up to date', async () => {
  expect(await read('otel/metrics/metric-names.ts'), advice).toBe(renderMetricNames(registry));
  const docs = await read('docs/metrics.md');
  expect(docs, advice).toBe(renderMetricDocs(docs, registry));
});

/** The member of OTLP's AnyValue that holds each type. */
const MEMBERS = {
  string: 'stringValue',
  int: 'intValue',
  double: 'doubleValue',
  bool: 'boolValue',
  strings: 'arrayValue',
  doubles: 'doubleValue',
};

/** Each attribute's name with its member of AnyValue; a map of doubles has one entry per key. */
function membersOf(ofRegistry: Registry, id: string, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    attributesOf(ofRegistry, id).flatMap(({ name, type }) =>
      (type === 'doubles' ? keys.map((key) => `${name}.${key}`) : [name]).map((each) => [
        each,
        MEMBERS[type],
      ]),
    ),
  );
}

interface EncodedAttributes {
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

const encodedMembers = ({ attributes }: EncodedAttributes): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.keys(value).join()]));

/** The encoded spans of a request with every field and a failed attempt. */
function encodeEverything(depth: SpanDepth, names: GenAiNames = 'pinned') {
  const ended: ReadableSpan[] = [];
  const spanProcessor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const tracer = new TracerProvider({ spanProcessors: [spanProcessor] }).getTracer(SCOPE.name);
  const start = { method: 'POST', route: '/v1/chat/completions' } as const;
  const span = createRequestSpans(tracer, { depth, genAi: names, number: () => undefined })(start);
  span.startOperation();
  const attempt = { method: 'POST', ordinal: 2, replica: 'vllm-a', url: 'http://replica:8000/v1' } as const;
  span.startAttempt(attempt).end({ status: 429 });
  const failed = { replica: 'vllm-a', failure: '429', status: 429, duration_ms: 2, after_ms: 3 };
  const record = { ...FULL_RECORD, failed_attempts: [failed] };
  span.end(record, { scheme: 'https', serverAddress: 'gateway.example', serverPort: 8443 });
  const encoder = new SpanEncoder();
  return ended.map((each) => JSON.parse(toSpanJson(encoder.encode(each)) ?? ''));
}

describe('the registry has exactly the attributes on the wire, with their types', () => {
  const keys = Object.keys(FULL_RECORD.timings);
  const genAi = membersOf(registry, 'registry.gateway.gen_ai', []);
  const fields = membersOf(registry, 'span.gateway.request', keys);
  const [operation, attempt, request] = encodeEverything('attempts');

  test('of a request span', () => {
    expect(encodedMembers(encodeEverything('server')[0])).toEqual({ ...fields, ...genAi });
  });

  test('of a request span above one of the operation', () => {
    expect(encodedMembers(request)).toEqual(fields);
  });

  test('of the span of an operation', () => {
    const own = membersOf(registry, 'span.gateway.operation', []);
    expect(encodedMembers(encodeEverything('operation')[0])).toEqual({ ...genAi, ...own });
    const { 'peer.service': _, ...withAttempts } = own;
    expect(encodedMembers(operation)).toEqual({ ...genAi, ...withAttempts });
  });

  test('with the newest names', () => {
    const { 'gen_ai.usage.cache_creation.input_tokens': _, ...kept } = genAi;
    const latest = membersOf(registry, 'registry.gateway.gen_ai_latest', []);
    const [only] = encodeEverything('server', 'latest');
    expect(encodedMembers(only)).toEqual({ ...fields, ...kept, ...latest });
  });

  test('of an attempt span', () => {
    expect(encodedMembers(attempt)).toEqual(membersOf(registry, 'span.gateway.attempt', []));
  });

  test('of the event of a failed attempt', () => {
    const [event] = request.events;
    expect(event.name).toBe(registry.groups.get('event.gateway.attempt_failed')?.eventName);
    expect(encodedMembers(event)).toEqual(membersOf(registry, 'event.gateway.attempt_failed', []));
  });
});

test('every field of a record is in the registry', () => {
  const names = attributesOf(registry, 'registry.gateway.beyond').map(({ name }) => name);
  expect(names.toSorted()).toEqual(
    Object.keys(FULL_RECORD)
      .map((field) => `gateway.${field}`)
      .toSorted(),
  );
  expect(Object.keys(RECORD_FIELDS)).toHaveLength(names.length);
});

test('model and usage are on one span of a request', () => {
  for (const depth of ['server', 'operation', 'attempts'] as const) {
    const spans = encodeEverything(depth).map((span) => Object.keys(encodedMembers(span)));
    expect(spans.filter((names) => names.some((name) => /^gen_ai\./.test(name)))).toHaveLength(1);
  }
});

test('a metric has exactly the attributes that the registry lists', () => {
  const collected = collectEverything();
  const listed = [...registry.groups.values()].flatMap(({ id, metric }) =>
    metric === undefined
      ? []
      : [
          [
            metric.name,
            attributesOf(registry, id)
              .map(({ name }) => name)
              .toSorted(),
          ],
        ],
  );
  expect(collected).toEqual(Object.fromEntries(listed));
  expect(Object.values(METRICS).map(({ name }) => name)).toEqual(listed.map(([name]) => name));
});

/** The attributes of each metric by its name, after requests of every kind. */
function collectEverything(): Readonly<Record<string, readonly string[]>> {
  const settings = { maxNames: 1, urlScheme: 'http', isKnownModel: () => true } as const;
  const records = new RecordMetrics(settings);
  const { error_type: _, truncated: __, ...success } = FULL_RECORD;
  for (const record of [success, { ...FULL_RECORD, status: 502 }]) records.record(record);
  const stats = { ...new ExportCounters().values, queued: 0 };
  const metrics = [
    ...records.collect(INTERVAL),
    ...toReplicaMetrics(GATEWAY_SOURCES.replicas(), INTERVAL),
    ...toModelMetrics(GATEWAY_SOURCES.models(), INTERVAL),
    ...toSourceMetrics(GATEWAY_SOURCES.sources(), INTERVAL),
    ...toConditionMetrics(GATEWAY_SOURCES.conditions(), INTERVAL),
    ...toVerdictMetrics(GATEWAY_SOURCES.comparisons(), INTERVAL),
    ...toGatewayMetrics(GATEWAY_SOURCES.gateway(), INTERVAL),
    ...new ExportMetrics(new URL('http://collector:4318')).collect(
      { stats, queueCapacity: 1, inflight: 0 },
      INTERVAL,
    ),
    ...toProcessMetrics(
      {
        ...{ version: '1.2.3', workers: GATEWAY_SOURCES.workers() },
        delays: [{ thread: 0, p50Ms: 1, p99Ms: 2, maxMs: 3 }],
      },
      INTERVAL,
    ),
  ];
  return Object.fromEntries(
    metrics.map(({ descriptor, dataPoints }) => {
      const names = dataPoints.flatMap(({ attributes }) => Object.keys(attributes));
      return [descriptor.name, [...new Set(names)].toSorted()];
    }),
  );
}

test('no name of the gateway is in a namespace of OpenTelemetry', () => {
  const semconv = new Set<string>(Object.values(SEMCONV));
  const defined = [...registry.groups.values()].flatMap(({ attributes }) =>
    attributes.map(({ name }) => name),
  );
  const own = defined.filter((name) => !semconv.has(name));
  expect(own.filter((name) => !name.startsWith('gateway.'))).toEqual([]);
});

test('the schema URL names the version that defines all conventional names', () => {
  expect(SCOPE.schemaUrl).toBe('https://opentelemetry.io/schemas/1.41.0');
});
