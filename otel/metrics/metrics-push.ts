import { setImmediate } from 'node:timers/promises';
import {
  type ExportResult,
  ExportResultCode,
  getStringFromEnv,
  type InstrumentationScope,
} from '@opentelemetry/core';
import {
  AggregationTemporalityPreference,
  OTLPMetricExporter,
} from '@opentelemetry/exporter-metrics-otlp-http';
import type { Resource } from '@opentelemetry/resources';
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import { type Clock, waitAtMost } from '../clock.ts';
import { DeadlineExporter } from '../export/deadline-exporter.ts';
import type { OtlpOptions } from '../export/otlp-options.ts';
import { toErrorCode } from '../system-error.ts';
import type { TelemetryLog } from '../telemetry-log.ts';

/** Series in one call, or a piece more: serializing them takes a millisecond or two, and nothing else runs meanwhile. */
const SERIES_A_CALL = 128;

const TEMPORALITY_VARIABLE = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE';

/** What is pushed, where to, and who hears of trouble. */
export interface MetricsPushOptions {
  /** Where to; the other OTEL_EXPORTER_OTLP_METRICS_* variables apply. */
  readonly collector: OtlpOptions;
  readonly intervalMs: number;
  readonly resource: Resource;
  readonly scope: InstrumentationScope;
  /** All metrics, made while they are read; none of the pieces has more series than fit in a call. */
  readonly collect: () => Iterable<MetricData>;
  readonly clock: Clock;
  readonly log: TelemetryLog;
}

/** The push of metrics while it runs. */
export interface MetricsPush {
  /** Pushes a last time, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/**
 * Pushes the metrics in intervals by the SDK's own exporter, in calls of which each is collected when its turn comes:
 * the SDK's reader would copy all of them at once. A push that fails is dropped, and the rest of its calls with it: the
 * next one carries the same sums. The first failure is logged, and the end of failures.
 */
export function startMetricsPush(options: MetricsPushOptions): MetricsPush {
  const { collector, intervalMs, clock, log } = options;
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
  const outcomes = new OutcomeLog(log);
  let underWay: Promise<void> | null = null;
  const push = (): Promise<void> => {
    underWay ??= pushAll(exporter, options, outcomes).finally(() => {
      underWay = null;
    });
    return underWay;
  };
  const timer = setInterval(() => void push(), intervalMs);
  timer.unref();
  return {
    async shutdown(deadlineMs) {
      clearInterval(timer);
      const flushed = Promise.resolve(underWay)
        .then(push)
        .then(() => exporter.shutdown())
        .catch(() => undefined);
      await waitAtMost(deadlineMs, flushed, clock);
    },
  };
}

/** Never rejects. */
async function pushAll(
  exporter: DeadlineExporter<ResourceMetrics>,
  { resource, scope, collect }: MetricsPushOptions,
  outcomes: OutcomeLog,
): Promise<void> {
  for (const metrics of toCalls(collect())) {
    const { promise, resolve } = Promise.withResolvers<ExportResult>();
    exporter.export({ resource, scopeMetrics: [{ scope, metrics: [...metrics] }] }, resolve);
    const result = await promise;
    outcomes.note(result);
    if (result.code !== ExportResultCode.SUCCESS) return;
    await setImmediate();
  }
}

function* toCalls(pieces: Iterable<MetricData>): Generator<readonly MetricData[]> {
  let call: MetricData[] = [];
  let seriesCount = 0;
  for (const piece of pieces) {
    call.push(piece);
    seriesCount += piece.dataPoints.length;
    if (seriesCount < SERIES_A_CALL) continue;
    yield call;
    call = [];
    seriesCount = 0;
  }
  if (call.length > 0) yield call;
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

/** Says when pushes begin and cease to fail. */
class OutcomeLog {
  readonly #log: TelemetryLog;
  #isFailing = false;

  constructor(log: TelemetryLog) {
    this.#log = log;
  }

  note({ code, error }: ExportResult): void {
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
