import { resourceFromAttributes } from '@opentelemetry/resources';
import { describe, expect, test } from 'vitest';
import { type ExpositionFormat, toExposition } from '../../../otel/metrics/exposition.ts';
import { toGaugeData, toHistogramData, toSumData } from '../../../otel/metrics/metric-data.ts';
import { INTERVAL } from './collected.ts';

const resource = resourceFromAttributes({ 'service.name': 'spangate' });
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';

const definition = <Instrument extends string>(name: string, instrument: Instrument, unit: string) => ({
  name,
  instrument,
  unit,
  description: 'A "quoted" path \\ and\na line.',
});

const DURATIONS = toHistogramData(
  definition('gen_ai.duration', 'histogram', 's'),
  [
    {
      attributes: { 'gateway.tenant': '"a" \\ b\nc' },
      value: {
        buckets: { boundaries: [0.5, 1], counts: [1, 0, 2] },
        sum: 7.25,
        count: 3,
        exemplars: [
          undefined,
          undefined,
          { value: 4, trace: { traceId: TRACE_ID, recordedEpochMs: 1795351710546 } },
        ],
      },
    },
  ],
  INTERVAL,
);
const METRICS = [
  DURATIONS,
  toSumData(
    definition('process.cpu.time', 'counter', 's'),
    [{ attributes: { 'cpu.mode': 'user' }, value: 1.5 }],
    INTERVAL,
  ),
  toSumData(definition('memory.usage', 'updowncounter', 'By'), [{ attributes: {}, value: 42 }], INTERVAL),
  toGaugeData(definition('delay', 'gauge', '{thing}'), [{ attributes: {}, value: 0.5 }], INTERVAL),
];

const write = async (format: ExpositionFormat, pieces = METRICS) =>
  (await Array.fromAsync(toExposition({ resource, pieces }, format))).join('');

const LABEL = 'gateway_tenant="\\"a\\" \\\\ b\\nc"';

describe('the formats of Prometheus', () => {
  test('the text format has the full names in its heads, and neither exemplars nor units', async () => {
    expect(await write('text')).toBe(`# HELP target_info Target metadata
# TYPE target_info gauge
target_info{service_name="spangate"} 1
# HELP gen_ai_duration_seconds A "quoted" path \\\\ and\\na line.
# TYPE gen_ai_duration_seconds histogram
gen_ai_duration_seconds_bucket{${LABEL},le="0.5"} 1
gen_ai_duration_seconds_bucket{${LABEL},le="1"} 1
gen_ai_duration_seconds_bucket{${LABEL},le="+Inf"} 3
gen_ai_duration_seconds_sum{${LABEL}} 7.25
gen_ai_duration_seconds_count{${LABEL}} 3
# HELP process_cpu_time_seconds_total A "quoted" path \\\\ and\\na line.
# TYPE process_cpu_time_seconds_total counter
process_cpu_time_seconds_total{cpu_mode="user"} 1.5
# HELP memory_usage_bytes A "quoted" path \\\\ and\\na line.
# TYPE memory_usage_bytes gauge
memory_usage_bytes 42
# HELP delay A "quoted" path \\\\ and\\na line.
# TYPE delay gauge
delay 0.5
`);
  });

  test('OpenMetrics has families without _total, units, exemplars and an end', async () => {
    expect(await write('openmetrics')).toBe(`# HELP target Target metadata
# TYPE target info
target_info{service_name="spangate"} 1
# HELP gen_ai_duration_seconds A \\"quoted\\" path \\\\ and\\na line.
# TYPE gen_ai_duration_seconds histogram
# UNIT gen_ai_duration_seconds seconds
gen_ai_duration_seconds_bucket{${LABEL},le="0.5"} 1
gen_ai_duration_seconds_bucket{${LABEL},le="1.0"} 1
gen_ai_duration_seconds_bucket{${LABEL},le="+Inf"} 3 # {trace_id="${TRACE_ID}"} 4 1795351710.546
gen_ai_duration_seconds_sum{${LABEL}} 7.25
gen_ai_duration_seconds_count{${LABEL}} 3
# HELP process_cpu_time_seconds A \\"quoted\\" path \\\\ and\\na line.
# TYPE process_cpu_time_seconds counter
# UNIT process_cpu_time_seconds seconds
process_cpu_time_seconds_total{cpu_mode="user"} 1.5
# HELP memory_usage_bytes A \\"quoted\\" path \\\\ and\\na line.
# TYPE memory_usage_bytes gauge
# UNIT memory_usage_bytes bytes
memory_usage_bytes 42
# HELP delay A \\"quoted\\" path \\\\ and\\na line.
# TYPE delay gauge
delay 0.5
# EOF
`);
  });

  test.each(['text', 'openmetrics'] as const)(
    '%s has one head for all pieces of a metric',
    async (format) => {
      const text = await write(format, [DURATIONS, DURATIONS]);
      expect(text.match(/^# TYPE gen_ai/gm)).toHaveLength(1);
      expect(text.match(/_count\{/g)).toHaveLength(2);
    },
  );
});
