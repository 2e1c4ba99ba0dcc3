import type { MetricData } from '@opentelemetry/sdk-metrics';
import { type Interval, toGaugeData, toSumData } from './metric-data.ts';
import { METRICS, VERDICT } from './metric-table.ts';

/** A comparison of replicas that goes on. There are few. */
export interface ComparisonState {
  /** The selectors, as somebody has written them. */
  readonly candidate: string;
  /** Null: all other replicas that serve a model of the candidate. */
  readonly baseline: string | null;
  readonly verdict: string;
  /** By their names in the admin API. */
  readonly figures: Readonly<Record<string, number>>;
}

const VERDICTS = ['good', 'bad', 'undecided'] as const;
const RATIOS = ['first_token', 'gaps', 'duration', 'lengths'] as const;

/** A list of names may be long. */
const MAX_CHARS = 256;

/** The comparisons as metrics; none without one. */
export function toVerdictMetrics(
  comparisons: readonly ComparisonState[],
  interval: Interval,
): readonly MetricData[] {
  if (comparisons.length === 0) return [];
  const series = [...byAttributes(comparisons).values()];
  return [
    toSumData(
      METRICS.verdict,
      series.flatMap(({ attributes, verdict }) =>
        VERDICTS.map((each) => ({
          attributes: { ...attributes, [VERDICT.verdict]: each },
          value: Number(each === verdict),
        })),
      ),
      interval,
    ),
    toGaugeData(
      METRICS.verdictRatio,
      series.flatMap(({ attributes, figures }) =>
        RATIOS.flatMap((measure) => {
          const value = figures[`${measure}_ratio`];
          return value === undefined
            ? []
            : [{ attributes: { ...attributes, [VERDICT.measure]: measure }, value }];
        }),
      ),
      interval,
    ),
    toGaugeData(
      METRICS.verdictRequests,
      series.map(({ attributes, figures }) => ({ attributes, value: figures.requests ?? 0 })),
      interval,
    ),
  ].filter(({ dataPoints }) => dataPoints.length > 0);
}

/** No two series have the same attributes: of comparisons that look alike, the last one counts. */
function byAttributes(comparisons: readonly ComparisonState[]) {
  return new Map(
    comparisons.map(({ candidate, baseline, ...rest }) => {
      const attributes = {
        [VERDICT.candidate]: candidate.slice(0, MAX_CHARS),
        [VERDICT.baseline]: (baseline ?? '').slice(0, MAX_CHARS),
      };
      return [JSON.stringify(attributes), { attributes, ...rest }];
    }),
  );
}
