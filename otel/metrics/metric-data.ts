import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { Distribution } from './cells.ts';

/** What a metric is called and in what it is measured: a row of METRICS. */
export interface MetricDefinition<Instrument extends string> {
  readonly name: string;
  readonly instrument: Instrument;
  readonly unit: string;
  readonly description: string;
}

/** The attributes of one series, and what it has come to. */
export interface Series<Value> {
  readonly attributes: Attributes;
  readonly value: Value;
}

/** When a metric began to count, and when it was read. */
export interface Interval {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

/** A sum of whole things as the SDK has it: a counter's only grows, an up-down counter's need not. */
export function toSumData(
  definition: MetricDefinition<'counter' | 'updowncounter'>,
  series: readonly Series<number>[],
  interval: Interval,
): MetricData {
  return {
    ...toBase(definition, ValueType.INT),
    dataPointType: DataPointType.SUM,
    isMonotonic: definition.instrument === 'counter',
    dataPoints: series.map((one) => ({ ...one, ...interval })),
  };
}

/** A histogram as the SDK has it. */
export function toHistogramData(
  definition: MetricDefinition<'histogram'>,
  series: readonly Series<Distribution>[],
  interval: Interval,
): MetricData {
  return {
    ...toBase(definition, ValueType.DOUBLE),
    dataPointType: DataPointType.HISTOGRAM,
    dataPoints: series.map((one) => ({ ...one, ...interval })),
  };
}

function toBase({ name, unit, description }: MetricDefinition<string>, valueType: ValueType) {
  return {
    descriptor: { name, unit, description, valueType },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
}
