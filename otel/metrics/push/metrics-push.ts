import { setImmediate } from 'node:timers/promises';
import type { Attributes, HrTime } from '@opentelemetry/api';
import {
  type ExportResult,
  ExportResultCode,
  getStringFromEnv,
  type InstrumentationScope,
} from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import { MetricsExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import { type Clock, type Log, toErrorCode, waitAtMost } from '#otel/base';
import { adviseOnCollector, CONTENT_TYPES, type OtlpOptions, toShownAddress } from '#otel/collector';
import { DeadlineExporter } from '#otel/export';
import type { Distribution } from '../metric-data.ts';
import { createMetricsSerializer, type MetricsSerializer } from './exemplar-serializer.ts';

/** Series in one call, up to one piece more. Serializing them blocks the event loop for one or two milliseconds. */
const SERIES_PER_CALL = 128;

/** What is pushed, and where to. */
export interface MetricsPushOptions {
  /** Where metrics are pushed. The other OTEL_EXPORTER_OTLP_METRICS_* variables apply. */
  readonly collector: OtlpOptions;
  readonly intervalMs: number;
  readonly resource: Resource;
  readonly scope: InstrumentationScope;
  /** All metrics, collected while they are iterated. No piece has more series than fit in one call. */
  readonly collect: () => Iterable<MetricData>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A running push of metrics. */
export interface MetricsPush {
  /** Pushes once more, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/**
 * Pushes the metrics in intervals with the SDK's exporter. Each push is several calls, and the metrics of each call are
 * collected just before it: the SDK's reader would copy all metrics at once. If a call fails, the rest of the push is
 * dropped, because the next push carries the same sums, or the differences to what was taken. Histograms carry the
 * exemplars since the last push that was taken. The first failure is logged, and the first success after it.
 */
export function startMetricsPush(options: MetricsPushOptions): MetricsPush {
  const { collector, intervalMs, clock, log } = options;
  /** Exemplars of requests that were recorded earlier were sent before. */
  let exemplarsSinceEpochMs = 0;
  const serializer = createMetricsSerializer(collector.protocol, () => exemplarsSinceEpochMs);
  const exporter = createExporter(collector, serializer);
  const outcomes = new OutcomeLog(log, collector.url);
  const differences = new Differences(readTemporality(log));
  let underWay: Promise<void> | null = null;
  const push = (): Promise<void> => {
    const startedEpochMs = Date.now();
    underWay ??= pushAll(exporter, options, differences, outcomes)
      .then((isTaken) => {
        if (isTaken) exemplarsSinceEpochMs = startedEpochMs;
      })
      .finally(() => {
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

/** The SDK's exporter, with our serializer. */
function createExporter(collector: OtlpOptions, serializer: MetricsSerializer) {
  const headers = { 'Content-Type': CONTENT_TYPES[collector.protocol] };
  return new DeadlineExporter<ResourceMetrics>(collector, (httpAgentOptions) => {
    const options = { url: collector.url.href, headers: collector.headers, httpAgentOptions };
    return new OTLPExporterBase(
      createOtlpHttpExportDelegate(
        convertLegacyHttpOptions(options, 'METRICS', 'v1/metrics', headers),
        serializer,
        'otlp_http_metric_exporter',
        MetricsExporterMetricsHelper,
        undefined,
      ),
    );
  });
}

/** Whether the collector has taken everything. Never rejects. */
async function pushAll(
  exporter: DeadlineExporter<ResourceMetrics>,
  { resource, scope, collect }: MetricsPushOptions,
  differences: Differences,
  outcomes: OutcomeLog,
): Promise<boolean> {
  for (const collected of toCalls(collect())) {
    const metrics = differences.toSent(collected);
    if (metrics.length === 0) continue;
    const { promise, resolve } = Promise.withResolvers<ExportResult>();
    exporter.export({ resource, scopeMetrics: [{ scope, metrics: [...metrics] }] }, resolve);
    const result = await promise;
    outcomes.note(result);
    if (result.code !== ExportResultCode.SUCCESS) return false;
    differences.noteTaken(collected);
    await setImmediate();
  }
  return true;
}

function* toCalls(pieces: Iterable<MetricData>): Generator<readonly MetricData[]> {
  let call: MetricData[] = [];
  let seriesCount = 0;
  for (const piece of pieces) {
    call.push(piece);
    seriesCount += piece.dataPoints.length;
    if (seriesCount < SERIES_PER_CALL) continue;
    yield call;
    call = [];
    seriesCount = 0;
  }
  if (call.length > 0) yield call;
}

/** Logs when pushes begin to fail, and when they work again. */
class OutcomeLog {
  readonly #log: Log;
  readonly #collector: URL;
  #isFailing = false;

  constructor(log: Log, collector: URL) {
    this.#log = log;
    this.#collector = collector;
  }

  note({ code, error }: ExportResult): void {
    const hasFailed = code !== ExportResultCode.SUCCESS;
    if (hasFailed && !this.#isFailing) {
      const reason = toReason(error);
      const advice = adviseOnCollector(reason, this.#collector);
      this.#log.warn(
        { reason, collector: toShownAddress(this.#collector), ...(advice === undefined ? {} : { advice }) },
        'the collector does not take metrics',
      );
    } else if (!hasFailed && this.#isFailing) this.#log.info({}, 'the collector takes metrics again');
    this.#isFailing = hasFailed;
  }
}

/** The status of the answer, or the code of the system error: never a message, which could quote an address. */
function toReason(error: Error | undefined): string {
  const status = error !== undefined && 'code' in error ? error.code : undefined;
  return typeof status === 'number' ? `http_${status}` : toErrorCode(error, 'unanswered');
}

const VARIABLE = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE';

/**
 * Which sums a push carries (metrics exporter specification, OTLP): all since the start; or the differences to the last
 * push, of every counter and histogram, or of those that are summed while requests end.
 */
export type Temporality = 'cumulative' | 'delta' | 'lowmemory';

const TEMPORALITIES: readonly Temporality[] = ['cumulative', 'delta', 'lowmemory'];

/** The temporality that the variable asks for. Any other value is a warning, and cumulative. */
export function readTemporality(log: Log): Temporality {
  const wanted = getStringFromEnv(VARIABLE)?.trim().toLowerCase();
  if (wanted === undefined) return 'cumulative';
  const known = TEMPORALITIES.find((each) => each === wanted);
  if (known === undefined) {
    log.warn(
      { variable: VARIABLE, temporality: wanted },
      'metrics are pushed as cumulative: the value is not cumulative, delta or lowmemory',
    );
  }
  return known ?? 'cumulative';
}

/** Counters that are read when metrics are collected: "asynchronous" in the specification. Those of records are not. */
const READ_COUNTERS = /^(?:process|nodejs|otel)\.|^gateway\.(?:export|worker|admin)\./;

/** The value of a series at the last push that was taken, and when it was read. */
interface Taken {
  readonly value: number | Distribution;
  readonly time: HrTime;
}

/**
 * Turns sums since the start into differences. What the collector has not taken is part of the next difference, so a push
 * that fails loses nothing. One that the collector has taken without its answer arriving is counted twice.
 */
export class Differences {
  readonly #temporality: Temporality;
  readonly #taken = new Map<string, Taken>();

  constructor(temporality: Temporality) {
    this.#temporality = temporality;
  }

  /** What is sent of these metrics. A series without a change is left out of differences. */
  toSent(metrics: readonly MetricData[]): readonly MetricData[] {
    return metrics.flatMap((metric) => {
      if (!this.#isDifference(metric)) return metric;
      const dataPoints = metric.dataPoints.flatMap((point) => this.#subtract(metric, point) ?? []);
      // The type of the points stays that of the metric.
      return dataPoints.length === 0
        ? []
        : ({ ...metric, dataPoints, aggregationTemporality: AggregationTemporality.DELTA } as MetricData);
    });
  }

  /** The collector has taken these metrics, as they were before `toSent`. */
  noteTaken(metrics: readonly MetricData[]): void {
    for (const metric of metrics.filter((each) => this.#isDifference(each))) {
      for (const { attributes, value, endTime } of metric.dataPoints) {
        this.#taken.set(toKey(metric, attributes), { value: value as Taken['value'], time: endTime });
      }
    }
  }

  #isDifference(metric: MetricData): boolean {
    if (this.#temporality === 'cumulative') return false;
    if (metric.dataPointType === DataPointType.HISTOGRAM) return true;
    if (metric.dataPointType !== DataPointType.SUM || !metric.isMonotonic) return false;
    return this.#temporality === 'delta' || !READ_COUNTERS.test(metric.descriptor.name);
  }

  #subtract(metric: MetricData, point: MetricData['dataPoints'][number]) {
    const before = this.#taken.get(toKey(metric, point.attributes));
    if (before === undefined) return point;
    const value = difference(point.value as Taken['value'], before.value);
    return value === null ? null : { ...point, value, startTime: before.time };
  }
}

function toKey({ descriptor }: MetricData, attributes: Attributes): string {
  return `${descriptor.name}\n${JSON.stringify(attributes)}`;
}

/** Null if nothing was added. */
function difference(now: Taken['value'], before: Taken['value']): Taken['value'] | null {
  if (typeof now === 'number' || typeof before === 'number') {
    // One that fell has begun again: its replica is another server now, or its thread has been replaced.
    const added = Number(now) - (now < before ? 0 : Number(before));
    return added > 0 ? added : null;
  }
  const count = now.count - before.count;
  if (count === 0) return null;
  const counts = now.buckets.counts.map((each, bucket) => each - (before.buckets.counts[bucket] ?? 0));
  return { ...now, buckets: { ...now.buckets, counts }, sum: now.sum - before.sum, count };
}
