import { getBooleanFromEnv, getNumberFromEnv, getStringFromEnv, hrTime } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { systemClock } from '../clock.ts';
import { SCHEMA_URL, SCOPE_NAME } from '../encode/attribute-names.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { type ConfiguredCollector, readOtlpOptions } from '../export/otlp-options.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import {
  ExportMetrics,
  type ExportState,
  type ReplicaState,
  toReplicaMetrics,
  toWorkerMetrics,
  type WorkerEnds,
} from './gateway-metrics.ts';
import { type MetricsPush, startMetricsPush } from './metrics-push.ts';
import { toPrometheusText } from './prometheus-text.ts';
import { RecordMetrics, type RecordMetricsSettings } from './record-metrics.ts';

/** Metrics SDK environment variables, "Periodic exporting MetricReader". */
const INTERVAL_VARIABLE = 'OTEL_METRIC_EXPORT_INTERVAL';
const DEFAULT_INTERVAL_MS = 60_000;

const SCOPE = { name: SCOPE_NAME, schemaUrl: SCHEMA_URL };

/** The settings of metrics, which are fixed before the first request. */
export interface MetricsSettings extends Omit<RecordMetricsSettings, 'isKnownModel'> {
  /**
   * Undefined: metrics are not pushed. What is set takes precedence over the OTEL_EXPORTER_OTLP_* variables,
   * `intervalMs` over OTEL_METRIC_EXPORT_INTERVAL.
   */
  readonly push: (ConfiguredCollector & { readonly intervalMs?: number | undefined }) | undefined;
}

/** The sources of the metrics that are not sums of records, and what metrics share with records. */
export interface MetricsCollaborators {
  /** Whether some replica is known to serve this model. Called for every record. */
  readonly isKnownModel: (model: string) => boolean;
  readonly replicas: () => readonly ReplicaState[];
  /** How many requests wait for a replica. */
  readonly waiting: () => number;
  readonly workerEnds: () => WorkerEnds;
  readonly exportState: () => ExportState;
  /** Where records are posted; undefined for files. */
  readonly collector: URL | undefined;
  /** The same as on spans. */
  readonly resource: Resource;
  readonly log: TelemetryLog;
}

/** The metrics of a gateway. */
export interface Metrics {
  /** Counts a record. It is cheap and never throws. */
  record(record: Readonly<RequestRecord>): void;
  /** All metrics now, in Prometheus' text format, in pieces. */
  toPrometheusText(): AsyncIterable<string>;
  /** Pushes once more if metrics are pushed, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/** Starts counting, and the push if there is one. Throws a TelemetryError for an address that is no URL. */
export async function startMetrics(
  settings: MetricsSettings,
  collaborators: MetricsCollaborators,
): Promise<Metrics> {
  const { isKnownModel, replicas, waiting, workerEnds, exportState, collector, resource } = collaborators;
  const records = new RecordMetrics({ ...settings, isKnownModel });
  const exporting = new ExportMetrics(collector);
  const startTime = hrTime();

  /** Each metric is read when the caller asks for it. */
  function* collect(): Generator<MetricData> {
    const interval = { startTime, endTime: hrTime() };
    yield* records.collect(interval);
    yield* toReplicaMetrics(replicas(), waiting(), interval);
    yield* toWorkerMetrics(workerEnds(), interval);
    yield* exporting.collect(exportState(), interval);
  }
  const push = await startPush(settings.push, collect, collaborators);
  return {
    record: (record) => records.record(record),
    toPrometheusText: () => toPrometheusText({ resource, scope: SCOPE, pieces: collect() }),
    shutdown: async (deadlineMs) => push?.shutdown(deadlineMs),
  };
}

/** OTEL_SDK_DISABLED and OTEL_METRICS_EXPORTER turn off the push, but not the counting, which GET /metrics needs. */
async function startPush(
  push: MetricsSettings['push'],
  collect: () => Iterable<MetricData>,
  { resource, log }: MetricsCollaborators,
): Promise<MetricsPush | undefined> {
  const isOff =
    getBooleanFromEnv('OTEL_SDK_DISABLED') || getStringFromEnv('OTEL_METRICS_EXPORTER') === 'none';
  if (push === undefined || isOff) return undefined;
  return startMetricsPush({
    collector: await readOtlpOptions(push, log, 'metrics'),
    intervalMs: push.intervalMs ?? readIntervalMs(),
    ...{ collect, scope: SCOPE, resource, clock: systemClock, log },
  });
}

/** The SDK's reader throws for an interval that is not positive. The specification asks for the default. */
function readIntervalMs(): number {
  const intervalMs = getNumberFromEnv(INTERVAL_VARIABLE) ?? 0;
  return intervalMs > 0 ? intervalMs : DEFAULT_INTERVAL_MS;
}
