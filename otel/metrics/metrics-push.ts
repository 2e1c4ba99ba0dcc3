import { type ExportResult, ExportResultCode, getStringFromEnv } from '@opentelemetry/core';
import {
  AggregationTemporalityPreference,
  OTLPMetricExporter,
} from '@opentelemetry/exporter-metrics-otlp-http';
import type { Resource } from '@opentelemetry/resources';
import {
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { Clock } from '../clock.ts';
import { DeadlineExporter } from '../deadline-exporter.ts';
import type { OtlpOptions } from '../otlp-options.ts';
import { toErrorCode } from '../system-error.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/** Series in one call: serializing them takes a millisecond or two, and nothing else runs meanwhile. */
const SERIES_A_CALL = 256;

const TEMPORALITY_VARIABLE = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE';

/** What is pushed, where to, and who hears of trouble. */
export interface MetricsPushOptions {
  /** Where to; the other OTEL_EXPORTER_OTLP_METRICS_* variables apply. */
  readonly collector: OtlpOptions;
  readonly intervalMs: number;
  readonly resource: Resource;
  readonly producer: MetricProducer;
  readonly clock: Clock;
  readonly log: TelemetryLog;
}

/** The push of metrics while it runs. */
export interface MetricsPush {
  /** Pushes a last time, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/**
 * Pushes the metrics in intervals, by the SDK's own reader and exporter. A push that fails is dropped: the next one
 * carries the same sums. The first failure is logged, and the end of failures.
 */
export function startMetricsPush(options: MetricsPushOptions): MetricsPush {
  const { collector, intervalMs, resource, producer, clock, log } = options;
  warnOfTemporality(log);
  const exporter = new DeadlineExporter<ResourceMetrics>(
    collector,
    (httpAgentOptions) =>
      new OTLPMetricExporter({
        url: collector.url.href,
        temporalityPreference: AggregationTemporalityPreference.CUMULATIVE,
        httpAgentOptions,
      }),
  );
  const reader = new PeriodicExportingMetricReader({
    exporter: new LoggedExporter(exporter, log),
    exportIntervalMillis: intervalMs,
    maxExportBatchSize: SERIES_A_CALL,
    metricProducers: [producer],
  });
  const provider = new MeterProvider({ resource, readers: [reader] });
  return {
    async shutdown(deadlineMs) {
      const isDone = new AbortController();
      // It has no deadline of its own, and repeats a call that failed for up to its time-out.
      const flushed = provider.shutdown().catch(() => undefined);
      await Promise.race([flushed, clock.sleep(deadlineMs, isDone.signal)]);
      isDone.abort();
    },
  };
}

/** Sums since the start are what we have; the difference between two pushes is for the Collector to make. */
function warnOfTemporality(log: TelemetryLog): void {
  const temporality = getStringFromEnv(TEMPORALITY_VARIABLE)?.trim().toLowerCase();
  if (temporality === undefined || temporality === 'cumulative') return;
  log.warn(
    { variable: TEMPORALITY_VARIABLE, temporality },
    'metrics are pushed as cumulative, whatever the variable says',
  );
}

/** An exporter that says when pushes begin and cease to fail. */
class LoggedExporter implements PushMetricExporter {
  readonly #exporter: DeadlineExporter<ResourceMetrics>;
  readonly #log: TelemetryLog;
  #isFailing = false;

  constructor(exporter: DeadlineExporter<ResourceMetrics>, log: TelemetryLog) {
    this.#exporter = exporter;
    this.#log = log;
  }

  export(metrics: ResourceMetrics, onResult: (result: ExportResult) => void): void {
    this.#exporter.export(metrics, (result) => {
      this.#note(result);
      onResult(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #note({ code, error }: ExportResult): void {
    const hasFailed = code !== ExportResultCode.SUCCESS;
    if (hasFailed && !this.#isFailing) {
      this.#log.warn({ reason: toReason(error) }, 'the collector does not take metrics');
    } else if (!hasFailed && this.#isFailing) this.#log.info({}, 'the collector takes metrics again');
    this.#isFailing = hasFailed;
  }
}

/** The status of an answer or the system's code: never a message, which could quote an address. */
function toReason(error: Error | undefined): string {
  const status = error !== undefined && 'code' in error ? error.code : undefined;
  return typeof status === 'number' ? `http_${status}` : toErrorCode(error, 'unanswered');
}
