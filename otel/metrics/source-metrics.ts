import type { MetricData } from '@opentelemetry/sdk-metrics';
import { type Interval, type Series, toSumData } from './metric-data.ts';
import { DISCOVERY, METRICS } from './metric-names.ts';

type State = 'ok' | 'failing' | 'unknown';

/** What the metrics show of what tells of the replicas behind a name. */
export interface SourceState {
  /** Of the entry in the configuration: no two have the same. */
  readonly name: string;
  readonly kind: string;
  readonly state: State;
  /** Null: its pods do not wait for the gateway. */
  readonly readinessGate: ReadinessGateState | null;
}

/** What confirms the pods of a source. */
interface ReadinessGateState {
  readonly state: State;
  readonly waitingCount: number;
  /** Grows. */
  readonly confirmedCount: number;
}

/** The sources as metrics. What has not answered yet has no series of whether it does. */
export function toSourceMetrics(sources: readonly SourceState[], interval: Interval): readonly MetricData[] {
  const up = sources.flatMap(({ name, kind, state }) =>
    toUpSeries(state, { [DISCOVERY.discoverySource]: name, [DISCOVERY.discoveryKind]: kind }),
  );
  const gates = sources.flatMap(({ name, readinessGate: gate }) =>
    gate === null ? [] : [{ gate, attributes: { [DISCOVERY.discoverySource]: name } }],
  );
  const sums = [
    [METRICS.discoveryUp, up],
    [METRICS.readinessGateUp, gates.flatMap(({ gate, attributes }) => toUpSeries(gate.state, attributes))],
    [
      METRICS.readinessGateWaiting,
      gates.map(({ gate, attributes }) => ({ attributes, value: gate.waitingCount })),
    ],
    [
      METRICS.readinessGateConfirmed,
      gates.map(({ gate, attributes }) => ({ attributes, value: gate.confirmedCount })),
    ],
  ] as const;
  return sums.flatMap(([metric, series]) =>
    series.length === 0 ? [] : [toSumData(metric, series, interval)],
  );
}

function toUpSeries(state: State, attributes: Series<number>['attributes']): readonly Series<number>[] {
  return state === 'unknown' ? [] : [{ attributes, value: Number(state === 'ok') }];
}
