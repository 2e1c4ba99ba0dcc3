import { readFile } from 'node:fs/promises';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { SpanEncoder, toSpanJson } from '#otel/otlp';
import type { Dialects, GenAiNames } from '#otel/record';
import { RECORD_FIELDS, SCOPE, SEMCONV } from '#otel/record/registry';
import { FULL_NOTES, FULL_RECORD } from '#testkit/records/records.ts';
import { createRequestSpans, type SpanDepth } from '../../otel/span/request-span.ts';
import { attributesOf, type Registry, readRegistry } from '../../scripts/generate/registry.ts';
import { dialectsOf, toField } from '../../scripts/generate/registry-groups.ts';
import { renderAttributes } from '../../scripts/generate/render-attributes.ts';
import { renderClientMetrics } from '../../scripts/generate/render-client-metrics.ts';
import {
  renderDashboardFields,
  renderMetricTable,
  renderNames,
  renderRecordSchema,
  renderRecordType,
} from '../../scripts/generate/render-names.ts';
import {
  renderLedgerDocs,
  renderMetricDocs,
  renderRecordDocs,
} from '../../scripts/generate/render-registry-docs.ts';
import { collectAllMetrics, METRIC_NAMES } from './metrics/all-metrics.ts';

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
  const ledger = await read('docs/internals/ledger-form.md');
  expect(ledger, advice).toBe(renderLedgerDocs(ledger, registry));
});

test('the metric names and the tables of docs/metrics.md are up to date', async () => {
  expect(await read('otel/metrics/metric-table.ts'), advice).toBe(renderMetricTable(registry));
  expect(await read('otel/metrics/client-metric-rows.ts'), advice).toBe(renderClientMetrics(registry));
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

/** Each attribute's name with its member of AnyValue; a map of doubles has one entry per key of the full record. */
function membersOf(ofRegistry: Registry, id: string): Record<string, string> {
  const keysOf = (name: string) => Object.keys(FULL_RECORD[toField(name) as 'timings' | 'route_ruled_out']);
  return Object.fromEntries(
    attributesOf(ofRegistry, id).flatMap(({ name, type }) =>
      (type === 'doubles' ? keysOf(name).map((key) => `${name}.${key}`) : [name]).map((each) => [
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
function encodeEverything(depth: SpanDepth, names: GenAiNames = 'pinned', dialects: Dialects | null = null) {
  const ended: ReadableSpan[] = [];
  const spanProcessor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const tracer = new TracerProvider({ spanProcessors: [spanProcessor] }).getTracer(SCOPE.name);
  const start = { method: 'POST', route: '/v1/chat/completions' } as const;
  const span = createRequestSpans(tracer, { depth, genAi: names, dialects, number: () => undefined })(start);
  span.startOperation();
  const attempt = { method: 'POST', ordinal: 2, replica: 'vllm-a', url: 'http://replica:8000/v1' } as const;
  span.startAttempt(attempt).end({ status: 429 });
  const failed = { replica: 'vllm-a', failure: '429', status: 429, duration_ms: 2, after_ms: 3 };
  const record = { ...FULL_RECORD, failed_attempts: [failed] };
  span.end(record, {
    scheme: 'https',
    serverAddress: 'gateway.example',
    serverPort: 8443,
    notes: FULL_NOTES,
  });
  const encoder = new SpanEncoder();
  return ended.map((each) => JSON.parse(toSpanJson(encoder.encode(each)) ?? ''));
}

describe('the registry has exactly the attributes on the wire, with their types', () => {
  const genAi = membersOf(registry, 'registry.gateway.gen_ai');
  const fields = membersOf(registry, 'span.gateway.request');
  const [operation, attempt, request] = encodeEverything('attempts');

  test('of a request span', () => {
    expect(encodedMembers(encodeEverything('server')[0])).toEqual({ ...fields, ...genAi });
  });

  test('of a request span above one of the operation', () => {
    expect(encodedMembers(request)).toEqual(fields);
  });

  test('of the span of an operation', () => {
    const own = membersOf(registry, 'span.gateway.operation');
    expect(encodedMembers(encodeEverything('operation')[0])).toEqual({ ...genAi, ...own });
    const { 'peer.service': _, ...withAttempts } = own;
    expect(encodedMembers(operation)).toEqual({ ...genAi, ...withAttempts });
  });

  test('with the newest names', () => {
    const { 'gen_ai.usage.cache_creation.input_tokens': _, ...kept } = genAi;
    const latest = membersOf(registry, 'registry.gateway.gen_ai_latest');
    const [only] = encodeEverything('server', 'latest');
    expect(encodedMembers(only)).toEqual({ ...fields, ...kept, ...latest });
  });

  test.each(dialectsOf(registry))('with the dialect $name', ({ name, id }) => {
    const off = { langfuse: false, openinference: false, signoz: false, datadog: false };
    const own = membersOf(registry, id);
    for (const depth of ['server', 'operation'] as const) {
      const [first] = encodeEverything(depth, 'pinned', { ...off, [name]: true });
      const [without] = encodeEverything(depth, 'pinned', off);
      expect(encodedMembers(first)).toEqual({ ...encodedMembers(without), ...own });
    }
  });

  test('of an attempt span', () => {
    expect(encodedMembers(attempt)).toEqual(membersOf(registry, 'span.gateway.attempt'));
  });

  test('of the event of a failed attempt', () => {
    const [event] = request.events;
    expect(event.name).toBe(registry.groups.get('event.gateway.attempt_failed')?.eventName);
    expect(encodedMembers(event)).toEqual(membersOf(registry, 'event.gateway.attempt_failed'));
  });
});

test('every field of a record is in the registry', () => {
  const names = attributesOf(registry, 'registry.gateway.beyond').map(({ name }) => name);
  expect(names.map(toField).toSorted()).toEqual(Object.keys(FULL_RECORD).toSorted());
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
  expect(METRIC_NAMES).toEqual(listed.map(([name]) => name));
});

/** The attributes of each metric by its name, after requests of every kind. */
function collectEverything(): Readonly<Record<string, readonly string[]>> {
  const metrics = collectAllMetrics();
  const points = Map.groupBy(metrics, ({ descriptor }) => descriptor.name);
  return Object.fromEntries(
    Array.from(points, ([name, pieces]) => {
      const names = pieces.flatMap(({ dataPoints }) =>
        dataPoints.flatMap(({ attributes }) => Object.keys(attributes)),
      );
      return [name, [...new Set(names)].toSorted()];
    }),
  );
}

const membersNames = (id: string) => attributesOf(registry, id).map(({ name }) => name);

test('no name of the gateway is in a namespace of OpenTelemetry', () => {
  const semconv = new Set<string>(Object.values(SEMCONV));
  const defined = [...registry.groups.values()].flatMap(({ attributes }) =>
    attributes.map(({ name }) => name),
  );
  const ofDialects = new Set(dialectsOf(registry).flatMap(({ id }) => membersNames(id)));
  const own = defined.filter((name) => !semconv.has(name) && !ofDialects.has(name));
  expect(own.filter((name) => !name.startsWith('gateway.'))).toEqual([]);
});

test('the schema URL names the version that defines all conventional names', () => {
  expect(SCOPE.schemaUrl).toBe('https://opentelemetry.io/schemas/1.41.0');
});
