import type { Attributes, HrTime } from '@opentelemetry/api';
import { getStringFromEnv } from '@opentelemetry/core';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { TelemetryLog } from '#otel/base';
import type { Distribution } from '../metric-data.ts';

const VARIABLE = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE';

/**
 * Which sums a push carries (metrics exporter specification, OTLP): all since the start; or the differences to the last
 * push, of every counter and histogram, or of those that are summed while requests end.
 */
export type Temporality = 'cumulative' | 'delta' | 'lowmemory';

const TEMPORALITIES: readonly Temporality[] = ['cumulative', 'delta', 'lowmemory'];

/** The temporality that the variable asks for. Any other value is a warning, and cumulative. */
export function readTemporality(log: TelemetryLog): Temporality {
  const wanted = getStringFromEnv(VARIABLE)?.trim().toLowerCase();
  if (wanted === undefined) return 'cumulative';
  const known = TEMPORALITIES.find((each) => each === wanted);
  if (known === undefined) {
    log.warn(
      { variable: VARIABLE, temporality: wanted },
      'metrics are pushed as cumulative: the value is not cumulative, delta or lowmemory',
    );
  }
  return known ?? 'cumulative';
}

/** Counters that are read when metrics are collected: "asynchronous" in the specification. Those of records are not. */
const READ_COUNTERS = /^(?:process|nodejs|otel)\.|^gateway\.(?:export|worker|admin)\./;

/** The value of a series at the last push that was taken, and when it was read. */
interface Taken {
  readonly value: number | Distribution;
  readonly time: HrTime;
}

/**
 * Turns sums since the start into differences. What the collector has not taken is part of the next difference, so a push
 * that fails loses nothing. One that the collector has taken without its answer arriving is counted twice.
 */
export class Differences {
  readonly #temporality: Temporality;
  readonly #taken = new Map<string, Taken>();

  constructor(temporality: Temporality) {
    this.#temporality = temporality;
  }

  /** What is sent of these metrics. A series without a change is left out of differences. */
  toSent(metrics: readonly MetricData[]): readonly MetricData[] {
    return metrics.flatMap((metric) => {
      if (!this.#isDifference(metric)) return metric;
      const dataPoints = metric.dataPoints.flatMap((point) => this.#subtract(metric, point) ?? []);
      // The type of the points stays that of the metric.
      return dataPoints.length === 0
        ? []
        : ({ ...metric, dataPoints, aggregationTemporality: AggregationTemporality.DELTA } as MetricData);
    });
  }

  /** The collector has taken these metrics, as they were before `toSent`. */
  noteTaken(metrics: readonly MetricData[]): void {
    for (const metric of metrics.filter((each) => this.#isDifference(each))) {
      for (const { attributes, value, endTime } of metric.dataPoints) {
        this.#taken.set(toKey(metric, attributes), { value: value as Taken['value'], time: endTime });
      }
    }
  }

  #isDifference(metric: MetricData): boolean {
    if (this.#temporality === 'cumulative') return false;
    if (metric.dataPointType === DataPointType.HISTOGRAM) return true;
    if (metric.dataPointType !== DataPointType.SUM || !metric.isMonotonic) return false;
    return this.#temporality === 'delta' || !READ_COUNTERS.test(metric.descriptor.name);
  }

  #subtract(metric: MetricData, point: MetricData['dataPoints'][number]) {
    const before = this.#taken.get(toKey(metric, point.attributes));
    if (before === undefined) return point;
    const value = difference(point.value as Taken['value'], before.value);
    return value === null ? null : { ...point, value, startTime: before.time };
  }
}

function toKey({ descriptor }: MetricData, attributes: Attributes): string {
  return `${descriptor.name}\n${JSON.stringify(attributes)}`;
}

/** Null if nothing was added. */
function difference(now: Taken['value'], before: Taken['value']): Taken['value'] | null {
  if (typeof now === 'number' || typeof before === 'number') {
    const added = Number(now) - Number(before);
    return added > 0 ? added : null;
  }
  const count = now.count - before.count;
  if (count === 0) return null;
  const { boundaries } = now.buckets;
  const counts = now.buckets.counts.map((each, bucket) => each - (before.buckets.counts[bucket] ?? 0));
  return { ...now, buckets: { boundaries, counts }, sum: now.sum - before.sum, count };
}
