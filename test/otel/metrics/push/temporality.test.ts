import { AggregationTemporality, type MetricData } from '@opentelemetry/sdk-metrics';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import type { Distribution } from '../../../../otel/metrics/metric-data.ts';
import {
  Differences,
  readTemporality,
  type Temporality,
} from '../../../../otel/metrics/push/metrics-push.ts';
import { RecordMetrics } from '../../../../otel/metrics/record-metrics.ts';
import { pointsOf, totalOf } from '../collected.ts';

afterEach(() => void vi.unstubAllEnvs());

/** Sums of records, read at the times 1, 2, 3 … */
function createSource() {
  const records = new RecordMetrics({
    maxNames: 10,
    urlScheme: 'http',
    genAi: 'pinned',
    isKnownModel: () => true,
    replicaUrl: (name) => `http://${name}:8000`,
  });
  let now = 0;
  return {
    add: (e2e_ms: number) => records.record({ ...LEAST_RECORD, e2e_ms }),
    read: () => [...records.collect({ startTime: [0, 0], endTime: [++now, 0] })],
  };
}

const DURATION = 'http.server.request.duration';

describe('as delta', () => {
  test('a push carries what was added since the last one that was taken', () => {
    const { add, read } = createSource();
    const differences = new Differences('delta');
    add(10);
    add(20);
    const first = read();
    const sent = differences.toSent(first);
    expect(totalOf(sent, 'gateway.requests')).toBe(2);
    expect(new Set(sent.map((metric) => metric.aggregationTemporality))).toEqual(
      new Set([AggregationTemporality.DELTA]),
    );
    differences.noteTaken(first);
    add(4000);
    const second = differences.toSent(read());

    expect(totalOf(second, 'gateway.requests')).toBe(1);
    const [point] = pointsOf(second, DURATION);
    expect(point).toMatchObject({ startTime: [1, 0], endTime: [2, 0], value: { count: 1, sum: 4 } });
    const value = point?.value as Distribution | undefined;
    expect(value?.buckets.counts.reduce((sum, count) => sum + count, 0)).toBe(1);
  });

  test('what a push that failed has carried is in the next one', () => {
    const { add, read } = createSource();
    const differences = new Differences('delta');
    add(10);
    differences.toSent(read());
    add(20);
    const sent = differences.toSent(read());
    expect(totalOf(sent, 'gateway.requests')).toBe(2);
    expect(pointsOf(sent, DURATION)).toMatchObject([{ startTime: [0, 0], value: { count: 2 } }]);
  });

  test('series without a change are not sent', () => {
    const { add, read } = createSource();
    const differences = new Differences('delta');
    add(10);
    const first = read();
    differences.toSent(first);
    differences.noteTaken(first);
    expect(differences.toSent(read())).toEqual([]);
  });
});

/** A metric as the SDK has it, of one point. */
const metric = (name: string, dataPointType: number, isMonotonic = true, value = 5) =>
  ({
    descriptor: { name, unit: '', description: '', valueType: 0 },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType,
    isMonotonic,
    dataPoints: [{ attributes: {}, value, startTime: [0, 0], endTime: [1, 0] }],
  }) as unknown as MetricData;

const GAUGE = 2;
const SUM = 3;

test('as delta a counter that has begun again, of a replica that is another server now, is sent whole', () => {
  const differences = new Differences('delta');
  const read = (value: number) => [metric('gateway.replica.gpu', SUM, true, value)];
  differences.noteTaken(read(900));
  expect(totalOf(differences.toSent(read(60)), 'gateway.replica.gpu')).toBe(60);
  differences.noteTaken(read(60));
  expect(totalOf(differences.toSent(read(100)), 'gateway.replica.gpu')).toBe(40);
});

test.each<[Temporality, string, MetricData, boolean]>([
  ['cumulative', 'a counter of records', metric('gateway.requests', SUM), false],
  ['delta', 'a counter of records', metric('gateway.requests', SUM), true],
  ['delta', 'a counter that is read', metric('process.cpu.time', SUM), true],
  ['delta', 'an up-down counter', metric('gateway.waiting', SUM, false), false],
  ['delta', 'a gauge', metric('process.uptime', GAUGE), false],
  ['lowmemory', 'a counter of records', metric('gateway.requests', SUM), true],
  ['lowmemory', 'a counter that is read', metric('gateway.export.exported', SUM), false],
])('with %s, whether %s is sent as differences', (temporality, _, given, isDifference) => {
  const [sent] = new Differences(temporality).toSent([given]);
  expect(sent?.aggregationTemporality).toBe(
    isDifference ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE,
  );
});

test.each([
  ['Delta', 'delta', 0],
  ['lowmemory', 'lowmemory', 0],
  ['cumulative', 'cumulative', 0],
  ['', 'cumulative', 0],
  ['sometimes', 'cumulative', 1],
])('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=%s is %s', (value, temporality, warnings) => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE', value);
  const log = createQuietLog();
  expect(readTemporality(log)).toBe(temporality);
  expect(log.lines).toHaveLength(warnings);
});
