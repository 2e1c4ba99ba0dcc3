import type { MetricData } from '@opentelemetry/sdk-metrics';
import { DISCOVERY } from '../encode/attribute-names.ts';
import { type Interval, toSumData } from './metric-data.ts';
import { METRICS } from './metric-names.ts';

/** What the metrics show of what tells of the replicas behind a name. */
export interface SourceState {
  /** Of the entry in the configuration: no two have the same. */
  readonly name: string;
  readonly kind: string;
  readonly state: 'ok' | 'failing' | 'unknown';
}

/** The sources as a metric. A source that has not answered yet has no series. */
export function toSourceMetrics(sources: readonly SourceState[], interval: Interval): readonly MetricData[] {
  const series = sources.flatMap(({ name, kind, state }) =>
    state === 'unknown'
      ? []
      : [
          {
            attributes: { [DISCOVERY.discoverySource]: name, [DISCOVERY.discoveryKind]: kind },
            value: Number(state === 'ok'),
          },
        ],
  );
  return series.length === 0 ? [] : [toSumData(METRICS.discoveryUp, series, interval)];
}
