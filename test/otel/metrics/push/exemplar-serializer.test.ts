import { JsonMetricsSerializer, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { describe, expect, test } from 'vitest';
import { decodeMessage } from '#testkit/otlp/otlp-messages.ts';
import {
  type Exemplar,
  toGaugeData,
  toHistogramData,
  toSumData,
} from '../../../../otel/metrics/metric-data.ts';
import { METRICS } from '../../../../otel/metrics/metric-table.ts';
import { createMetricsSerializer } from '../../../../otel/metrics/push/exemplar-serializer.ts';

const INTERVAL = { startTime: [1_700_000_000, 5], endTime: [1_700_000_060, 999_999_999] } as const;
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const LONG_TEXT = 'é'.repeat(200);

const exemplarAt = (recordedEpochMs: number, value: number): Exemplar => ({
  trace: { traceId: TRACE_ID, recordedEpochMs },
  value,
});

const distribution = (exemplars?: readonly (Exemplar | undefined)[]) => ({
  buckets: { boundaries: [0.1, 1], counts: [1, 0, 300] },
  sum: 3.5,
  count: 301,
  ...(exemplars === undefined ? {} : { exemplars }),
});

const duration = (...points: readonly (readonly (Exemplar | undefined)[] | undefined)[]) =>
  toHistogramData(
    METRICS.httpServerRequestDuration,
    points.map((exemplars, index) => ({
      attributes: { 'http.route': LONG_TEXT, index },
      value: distribution(exemplars),
    })),
    { startTime: [...INTERVAL.startTime], endTime: [...INTERVAL.endTime] },
  );

const interval = { startTime: [1, 2], endTime: [3, 4] } satisfies {
  startTime: [number, number];
  endTime: [number, number];
};
const OTHERS: readonly MetricData[] = [
  toSumData(METRICS.requests, [{ attributes: { a: 'b' }, value: 7 }], interval),
  toGaugeData(METRICS.processUptime, [{ attributes: {}, value: 1 }], interval),
];

const toCall = (metrics: readonly MetricData[]) => ({
  resource: resourceFromAttributes({ 'service.name': 'spangate' }),
  scopeMetrics: [{ scope: { name: 'spangate', version: '1' }, metrics: [...metrics] }],
});

/** All exemplars of a call, by the point they are in. */
function exemplarsOf(message: unknown): readonly unknown[] {
  const { resourceMetrics } = message as {
    resourceMetrics: {
      scopeMetrics: { metrics: { histogram?: { dataPoints: { exemplars?: unknown }[] } }[] }[];
    }[];
  };
  return resourceMetrics
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics)
    .flatMap(({ histogram }) => histogram?.dataPoints.map(({ exemplars }) => exemplars ?? []) ?? []);
}

const withoutExemplars = (message: unknown) =>
  JSON.parse(JSON.stringify(message), (name, value) => (name === 'exemplars' ? undefined : value));

const PROTOCOLS = {
  'http/protobuf': {
    sdk: ProtobufMetricsSerializer,
    decode: (bytes: Uint8Array) => decodeMessage('MetricsData', bytes),
  },
  'http/json': {
    sdk: JsonMetricsSerializer,
    decode: (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString()),
  },
} as const;

describe.for(['http/protobuf', 'http/json'] as const)('%s', (protocol) => {
  const { sdk, decode } = PROTOCOLS[protocol];
  const serialize = (metrics: readonly MetricData[], sinceEpochMs = 0) =>
    createMetricsSerializer(protocol, () => sinceEpochMs).serializeRequest(toCall(metrics)) ??
    new Uint8Array();

  test('each point of a histogram has its exemplars, and all else is what the SDK writes', () => {
    const metrics = [
      ...OTHERS,
      duration([exemplarAt(1_700_000_001_234, 0.05), undefined, exemplarAt(1_700_000_002_000, 7)], undefined),
      duration([undefined, undefined, exemplarAt(1_700_000_003_001, 2)]),
      ...OTHERS,
    ];
    const written = decode(serialize(metrics));
    expect(exemplarsOf(written)).toMatchObject([
      [
        { timeUnixNano: '1700000001234000000', asDouble: 0.05, traceId: TRACE_ID },
        { timeUnixNano: '1700000002000000000', asDouble: 7, traceId: TRACE_ID },
      ],
      [],
      [{ timeUnixNano: '1700000003001000000', asDouble: 2, traceId: TRACE_ID }],
    ]);
    expect(withoutExemplars(written)).toEqual(
      withoutExemplars(decode(sdk.serializeRequest(toCall(metrics)) ?? new Uint8Array())),
    );
  });

  test('exemplars that were sent before are left out', () => {
    const metrics = [duration([exemplarAt(999, 0.05), undefined, exemplarAt(1000, 7)])];
    expect(exemplarsOf(decode(serialize(metrics, 1000)))).toMatchObject([[{ asDouble: 7 }]]);
  });

  test('a call without exemplars is what the SDK writes, byte for byte', () => {
    const metrics = [...OTHERS, duration(undefined)];
    expect(serialize(metrics)).toEqual(sdk.serializeRequest(toCall(metrics)));
  });
});
