import type { MetricData } from '@opentelemetry/sdk-metrics';
import { RECORD_FIELDS, SHADOW } from '#otel/record/registry';
import { type Interval, toSumData } from './metric-data.ts';
import { COPY, METRICS } from './metric-names.ts';

/** What became of the requests that were due to be copied to one shadow, since the gateway knows it. */
export interface ShadowState {
  readonly name: string;
  /** Copies that have ended, by how. */
  readonly copies: ReadonlyMap<string, number>;
  /** Requests that were not copied, by why. */
  readonly skipped: ReadonlyMap<string, number>;
}

/** The copies as metrics; none before a replica was a shadow. */
export function toShadowMetrics(shadows: readonly ShadowState[], interval: Interval): readonly MetricData[] {
  const toSeries = (attribute: string, countsOf: (shadow: ShadowState) => ReadonlyMap<string, number>) =>
    shadows.flatMap((shadow) =>
      Array.from(countsOf(shadow), ([key, value]) => ({
        attributes: { [RECORD_FIELDS.replica.name]: shadow.name, [attribute]: key },
        value,
      })),
    );
  return [
    toSumData(
      METRICS.shadowCopies,
      toSeries(SHADOW.shadowOutcome, ({ copies }) => copies),
      interval,
    ),
    toSumData(
      METRICS.shadowSkipped,
      toSeries(COPY.shadowSkipReason, ({ skipped }) => skipped),
      interval,
    ),
  ].filter(({ dataPoints }) => dataPoints.length > 0);
}
