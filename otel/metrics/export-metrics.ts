import type { Attributes } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import type { ExportStats } from '#otel/queue';
import { SEMCONV } from '#otel/record/registry';
import { type Interval, type Series, toSumData } from './metric-data.ts';
import { METRICS } from './metric-table.ts';

/** What the metrics show of the export. */
export interface ExportState {
  readonly stats: ExportStats;
  /** How many records the queue holds at most. */
  readonly queueCapacity: number;
  /** Records of the current batch; they count as queued. */
  readonly inflight: number;
}

const DEFAULT_PORTS = { http: 80, https: 443 };

/**
 * The queue and the export as metrics, by the semantic conventions for span processors and exporters (SDK metrics, 1.41
 * to 1.44). Records count as the spans; attempt spans do not count.
 */
export class ExportMetrics {
  readonly #processor = toComponent('spangate.RecordProcessor');
  readonly #exporter: Attributes;
  /** Records that were passed to the exporter at least once. */
  #processedCount = 0;

  /** `collector`: where records are posted; undefined for files. */
  constructor(collector: URL | undefined) {
    this.#exporter =
      collector === undefined ? toComponent('spangate.FileExporter') : toOtlpExporter(collector);
  }

  collect({ stats, queueCapacity, inflight }: ExportState, interval: Interval): readonly MetricData[] {
    // A batch that is split is passed to the exporter again, part by part. The counter must not shrink meanwhile.
    this.#processedCount = Math.max(this.#processedCount, stats.exported + stats.rejected + inflight);
    const one = (value: number, attributes: Attributes = {}, errorType?: string): Series<number> => ({
      attributes: errorType === undefined ? attributes : { ...attributes, [SEMCONV.errorType]: errorType },
      value,
    });
    return [
      toSumData(METRICS.otelSdkProcessorSpanQueueSize, [one(stats.queued, this.#processor)], interval),
      toSumData(METRICS.otelSdkProcessorSpanQueueCapacity, [one(queueCapacity, this.#processor)], interval),
      toSumData(
        METRICS.otelSdkProcessorSpanProcessed,
        [one(this.#processedCount, this.#processor), one(stats.dropped, this.#processor, 'queue_full')],
        interval,
      ),
      toSumData(METRICS.otelSdkExporterSpanInflight, [one(inflight, this.#exporter)], interval),
      toSumData(
        METRICS.otelSdkExporterSpanExported,
        [one(stats.exported, this.#exporter), one(stats.rejected, this.#exporter, 'rejected')],
        interval,
      ),
      toSumData(METRICS.exportRecorded, [one(stats.recorded)], interval),
      toSumData(METRICS.exportRestored, [one(stats.restored)], interval),
      toSumData(METRICS.exportExported, [one(stats.exported)], interval),
      toSumData(METRICS.exportDropped, [one(stats.dropped)], interval),
      toSumData(METRICS.exportRejected, [one(stats.rejected)], interval),
      toSumData(METRICS.exportLost, [one(stats.lost)], interval),
      toSumData(METRICS.exportFailedCalls, [one(stats.failedCalls)], interval),
    ];
  }
}

function toOtlpExporter({ hostname, port, protocol }: URL): Attributes {
  return {
    ...toComponent('otlp_http_json_span_exporter'),
    [SEMCONV.serverAddress]: hostname,
    [SEMCONV.serverPort]:
      port === '' ? DEFAULT_PORTS[protocol === 'https:' ? 'https' : 'http'] : Number(port),
  };
}

function toComponent(type: string): Attributes {
  return { [SEMCONV.otelComponentType]: type, [SEMCONV.otelComponentName]: `${type}/0` };
}
