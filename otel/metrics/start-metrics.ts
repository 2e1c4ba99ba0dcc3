import { getBooleanFromEnv, getNumberFromEnv, getStringFromEnv, hrTime } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { type Log, systemClock } from '#otel/base';
import { type CollectorHeaders, type ConfiguredCollector, readOtlpOptions } from '#otel/collector';
import { readGenAiNames } from '#otel/record';
import { RECORD_FIELDS, type RequestRecord, SCOPE, SHADOW } from '#otel/record/registry';
import { type EventLoopDelayMemory, publishEventLoopDelay, readEventLoopDelays } from './event-loop-delay.ts';
import { ExportMetrics, type ExportState } from './export-metrics.ts';
import { type ExpositionFormat, toExposition } from './exposition.ts';
import { type Interval, type Series, toPieces, toSumData } from './metric-data.ts';
import { CONDITION, COPY, DISCOVERY, METRICS } from './metric-table.ts';
import {
  type GatewayState,
  type ProcessState,
  toGatewayMetrics,
  toProcessMetrics,
} from './process-metrics.ts';
import { type MetricsPush, startMetricsPush } from './push/metrics-push.ts';
import { RecordMetrics, type RecordMetricsSettings } from './record-metrics.ts';
import { type ModelState, type ReplicaState, toModelMetrics, toReplicaMetrics } from './replica-metrics.ts';
import { type ComparisonState, toVerdictMetrics } from './verdict-metrics.ts';

/** Metrics SDK environment variables, "Periodic exporting MetricReader". */
const INTERVAL_VARIABLE = 'OTEL_METRIC_EXPORT_INTERVAL';
const DEFAULT_INTERVAL_MS = 60_000;

/** The settings of metrics, which are fixed before the first request. */
export interface MetricsSettings
  extends Omit<RecordMetricsSettings, 'isKnownModel' | 'replicaUrl' | 'genAi'> {
  /**
   * Undefined: metrics are not pushed. What is set takes precedence over the OTEL_EXPORTER_OTLP_* variables,
   * `intervalMs` over OTEL_METRIC_EXPORT_INTERVAL.
   */
  readonly push: (ConfiguredCollector & { readonly intervalMs?: number | null }) | undefined;
}

/** The sources of the metrics that are not sums of records, and what metrics share with records. */
export interface MetricsCollaborators {
  /** Whether some replica is known to serve this model. Called for every record. */
  readonly isKnownModel: (model: string) => boolean;
  /** The `url` of a replica that is in use. Called for every record. */
  readonly replicaUrl: (name: string) => string | undefined;
  readonly replicas: () => readonly ReplicaState[];
  readonly models: () => readonly ModelState[];
  readonly sources: () => readonly SourceState[];
  /** What is wrong now. */
  readonly conditions: () => readonly ConditionState[];
  /** The comparisons of replicas that go on. */
  readonly comparisons: () => readonly ComparisonState[];
  /** The replicas that are or were shadows. */
  readonly shadows: () => readonly ShadowState[];
  readonly gateway: () => GatewayState;
  /** The workers that have threads of their own. */
  readonly workers: () => ProcessState['workers'];
  /** Of all threads. The delays of this one are published in it. */
  readonly eventLoopDelays: EventLoopDelayMemory;
  /** Of the gateway. */
  readonly version: string;
  readonly exportState: () => ExportState;
  /** Where records are posted; undefined for files. */
  readonly collector: URL | undefined;
  /** Headers for the push beside those of the variables. Default: none. */
  readonly collectorHeaders?: CollectorHeaders | undefined;
  /** The same as on spans. */
  readonly resource: Resource;
  readonly log: Log;
}

/** The metrics of a gateway. */
export interface Metrics {
  /** Counts a record. It is cheap and never throws. */
  record(record: Readonly<RequestRecord>): void;
  /** All metrics now, in a format of Prometheus, in pieces. */
  toExposition(format: ExpositionFormat): AsyncIterable<string>;
  /** Pushes once more if metrics are pushed, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/** Starts counting, and the push if there is one. Throws a TelemetrySettingError for an address that is no URL. */
export async function startMetrics(
  settings: MetricsSettings,
  collaborators: MetricsCollaborators,
): Promise<Metrics> {
  const { isKnownModel, replicaUrl, eventLoopDelays, exportState, collector, resource } = collaborators;
  const records = new RecordMetrics({ ...settings, isKnownModel, replicaUrl, genAi: readGenAiNames() });
  const exporting = new ExportMetrics(collector);
  const startTime = hrTime();

  /** Each metric is read when the caller asks for it. */
  function* collect(): Generator<MetricData> {
    const interval = { startTime, endTime: hrTime() };
    yield* records.collect(interval);
    yield* toPieces(toReplicaMetrics(collaborators.replicas(), interval));
    yield* toPieces(toModelMetrics(collaborators.models(), interval));
    yield* toSourceMetrics(collaborators.sources(), interval);
    yield* toConditionMetrics(collaborators.conditions(), interval);
    yield* toPieces(toVerdictMetrics(collaborators.comparisons(), interval));
    yield* toPieces(toShadowMetrics(collaborators.shadows(), interval));
    yield* toGatewayMetrics(collaborators.gateway(), interval);
    yield* exporting.collect(exportState(), interval);
    const { version, workers } = collaborators;
    const delays = readEventLoopDelays(eventLoopDelays);
    yield* toProcessMetrics({ version, workers: workers(), delays }, interval);
  }
  const push = await startPush(settings.push, collect, collaborators);
  const stopPublishing = publishEventLoopDelay(eventLoopDelays, 0);
  return {
    record: (record) => records.record(record),
    toExposition: (format) => toExposition({ resource, pieces: collect() }, format),
    async shutdown(deadlineMs) {
      stopPublishing();
      await push?.shutdown(deadlineMs);
    },
  };
}

/** OTEL_SDK_DISABLED and OTEL_METRICS_EXPORTER turn off the push, but not the counting, which GET /metrics needs. */
async function startPush(
  push: MetricsSettings['push'],
  collect: () => Iterable<MetricData>,
  { resource, collectorHeaders, version, log }: MetricsCollaborators,
): Promise<MetricsPush | undefined> {
  const isOff =
    getBooleanFromEnv('OTEL_SDK_DISABLED') || getStringFromEnv('OTEL_METRICS_EXPORTER') === 'none';
  if (push === undefined || isOff) return undefined;
  return startMetricsPush({
    collector: await readOtlpOptions({ ...push, headers: collectorHeaders }, log, 'metrics'),
    intervalMs: push.intervalMs ?? readIntervalMs(),
    scope: { ...SCOPE, version },
    collect,
    resource,
    clock: systemClock,
    log,
  });
}

/** The SDK's reader throws for an interval that is not positive. The specification asks for the default. */
function readIntervalMs(): number {
  const intervalMs = getNumberFromEnv(INTERVAL_VARIABLE) ?? 0;
  return intervalMs > 0 ? intervalMs : DEFAULT_INTERVAL_MS;
}

/** A condition that is on. No two have the same id and subject. */
interface ConditionState {
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

/** What became of the requests that were due to be copied to one shadow, since the gateway knows it. */
interface ShadowState {
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

type State = 'ok' | 'failing' | 'unknown';

/** What the metrics show of what tells of the replicas behind a name. */
interface SourceState {
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
