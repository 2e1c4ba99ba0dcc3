import { hrTime } from '@opentelemetry/core';
import type { MetricData } from '@opentelemetry/sdk-metrics';

/** The count of a point: its sum, or the number of values of a histogram. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' ? value : (value as { readonly count: number }).count;

/** An interval of no length. */
export const INTERVAL = { startTime: hrTime(), endTime: hrTime() };

/** The points of a metric from all of its pieces; none if it has no series. */
export function pointsOf(metrics: readonly MetricData[], name: string) {
  return metrics.flatMap(({ descriptor, dataPoints }) => (descriptor.name === name ? [...dataPoints] : []));
}

/** The total of all series of a metric, or of those with these attributes. */
export function totalOf(
  metrics: readonly MetricData[],
  name: string,
  attributes: Readonly<Record<string, unknown>> = {},
): number {
  return pointsOf(metrics, name)
    .filter((point) => Object.entries(attributes).every(([key, value]) => point.attributes[key] === value))
    .reduce((total, { value }) => total + countOf(value), 0);
}
