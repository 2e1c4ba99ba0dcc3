import { hrTime } from '@opentelemetry/core';
import type { MetricData } from '@opentelemetry/sdk-metrics';

/** What a point has counted: a sum, or how many values a histogram has. */
export const countOf = (value: unknown): number =>
  typeof value === 'number' ? value : (value as { readonly count: number }).count;

/** One moment for a test: when metrics began to count, and when they were read. */
export const INTERVAL = { startTime: hrTime(), endTime: hrTime() };

/** The points of a metric, whatever pieces it came in; none if it has no series. */
export function pointsOf(metrics: readonly MetricData[], name: string) {
  return metrics.flatMap(({ descriptor, dataPoints }) => (descriptor.name === name ? [...dataPoints] : []));
}

/** What all series of a metric have counted, or those with these attributes. */
export function totalOf(
  metrics: readonly MetricData[],
  name: string,
  attributes: Readonly<Record<string, unknown>> = {},
): number {
  return pointsOf(metrics, name)
    .filter((point) => Object.entries(attributes).every(([key, value]) => point.attributes[key] === value))
    .reduce((total, { value }) => total + countOf(value), 0);
}
