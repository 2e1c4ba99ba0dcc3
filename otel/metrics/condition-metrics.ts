import type { MetricData } from '@opentelemetry/sdk-metrics';
import { type Interval, toSumData } from './metric-data.ts';
import { CONDITION, METRICS } from './metric-names.ts';

/** A condition that is on. No two have the same id and subject. */
export interface ConditionState {
  readonly id: string;
  readonly severity: string;
  /** Of bounded number. */
  readonly subject: string;
}

/** The conditions as a metric; none without one. */
export function toConditionMetrics(
  conditions: readonly ConditionState[],
  interval: Interval,
): readonly MetricData[] {
  if (conditions.length === 0) return [];
  const series = conditions.map(({ id, severity, subject }) => ({
    attributes: { [CONDITION.id]: id, [CONDITION.severity]: severity, [CONDITION.subject]: subject },
    value: 1,
  }));
  return [toSumData(METRICS.condition, series, interval)];
}
