import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';

/** The name and unit of a metric: a row of METRICS. */
export interface MetricDefinition<Instrument extends string> {
  readonly name: string;
  readonly instrument: Instrument;
  readonly unit: string;
  readonly description: string;
}

/** The trace of a recorded request. */
export interface RequestTrace {
  readonly traceId: string;
  readonly recordedEpochMs: number;
}

/** One of the values in a bucket, in the unit of the metric, with the trace of its request. */
export interface Exemplar {
  readonly trace: RequestTrace;
  readonly value: number;
}

/** A distribution like the SDK's HistogramMetricData, but without extremes, which would be those of all time. */
export interface Distribution {
  readonly buckets: { readonly boundaries: number[]; readonly counts: number[] };
  readonly sum: number;
  readonly count: number;
  /** The last value of each bucket, its own field because the SDK's data has none. Absent if the histogram keeps none. */
  readonly exemplars?: readonly (Exemplar | undefined)[];
}

/** The attributes of one series, and its value. */
export interface Series<Value> {
  readonly attributes: Attributes;
  readonly value: Value;
}

/** When counting began, and when the metric was read. */
export interface Interval {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

const DOUBLE_UNITS: ReadonlySet<string> = new Set(['s', '{currency}']);

/**
 * A sum in the SDK's form. The sum of a counter only grows; that of an up-down counter may shrink. Sums of seconds and of
 * money are doubles, all others integers.
 */
export function toSumData(
  definition: MetricDefinition<'counter' | 'updowncounter'>,
  series: readonly Series<number>[],
  interval: Interval,
): MetricData {
  return {
    ...toBase(definition, DOUBLE_UNITS.has(definition.unit) ? ValueType.DOUBLE : ValueType.INT),
    dataPointType: DataPointType.SUM,
    isMonotonic: definition.instrument === 'counter',
    dataPoints: series.map((one) => ({ ...one, ...interval })),
  };
}

/** Values that cannot be added up, in the SDK's form. */
export function toGaugeData(
  definition: MetricDefinition<'gauge'>,
  series: readonly Series<number>[],
  interval: Interval,
): MetricData {
  return {
    ...toBase(definition, ValueType.DOUBLE),
    dataPointType: DataPointType.GAUGE,
    dataPoints: series.map((one) => ({ ...one, ...interval })),
  };
}

/** A histogram in the SDK's form. */
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

/** How many series of one metric are copied at a time, which takes a fraction of a millisecond. */
export const SERIES_PER_PIECE = 64;

/** The same metrics; one with many series comes in several pieces, which follow each other. */
export function* toPieces(metrics: Iterable<MetricData>): Generator<MetricData> {
  for (const metric of metrics) {
    for (let start = 0; start < metric.dataPoints.length; start += SERIES_PER_PIECE) {
      const dataPoints = metric.dataPoints.slice(start, start + SERIES_PER_PIECE);
      // The type of the points depends on `dataPointType`, which stays the same.
      yield { ...metric, dataPoints } as MetricData;
    }
  }
}

function toBase({ name, unit, description }: MetricDefinition<string>, valueType: ValueType) {
  return {
    descriptor: { name, unit, description, valueType },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
}
