import type { MetricData } from '@opentelemetry/sdk-metrics';
import { toErrorType, toFailureType, toLastAttemptOutcome } from '#otel/outcome';
import type { GenAiNames } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import { BoundedNames } from './bounded-names.ts';
import { ClientMetrics, isOperation } from './client-series.ts';
import { type Interval, SERIES_PER_PIECE } from './metric-data.ts';
import {
  addFailedAttempts,
  addTo,
  bindAll,
  type CommonLabels,
  createMetrics,
  type RequestLabels,
  type RequestSeries,
} from './record-series.ts';

/** The bounds of the series, and what all requests have in common. */
export interface RecordMetricsSettings extends CommonLabels {
  /** How many tenants, and how many models that `isKnownModel` does not know, get their own series. */
  readonly maxNames: number;
  /** Whether some replica is known to serve this model. Called for every record. */
  readonly isKnownModel: (model: string) => boolean;
  /** The `url` of a replica that is in use. Called for every record. */
  readonly replicaUrl: (name: string) => string | undefined;
  /** Which names of GenAI's conventions the metrics of the client's side have. */
  readonly genAi: GenAiNames;
}

/** How many combinations of labels are cached with their series. */
const MAX_CACHED_SERIES = 4096;

/**
 * Counts records. It keeps the sums itself: the SDK's instruments hash the attributes of every measurement, which costs
 * many times as much (docs/metrics.md). Readers collect the sums like those of any MetricProducer.
 */
export class RecordMetrics {
  readonly #settings: RecordMetricsSettings;
  readonly #models: BoundedNames;
  readonly #responseModels: BoundedNames;
  readonly #tenants: BoundedNames;
  readonly #metrics = createMetrics();
  readonly #clientMetrics: ClientMetrics;
  readonly #seriesByLabels = new Map<string, RequestSeries>();

  constructor(settings: RecordMetricsSettings) {
    this.#settings = settings;
    this.#models = new BoundedNames(settings.maxNames, settings.isKnownModel);
    this.#responseModels = new BoundedNames(settings.maxNames, settings.isKnownModel);
    this.#tenants = new BoundedNames(settings.maxNames);
    this.#clientMetrics = new ClientMetrics(settings.genAi);
  }

  /** Counts one record. Called for every request: it is cheap and never throws. */
  record(record: Readonly<RequestRecord>): void {
    const hasSucceeded = record.status >= 200 && record.status <= 299;
    const errorType = toErrorType(record);
    const model = this.#models.toLabel(record.model, hasSucceeded);
    const trace = { traceId: record.trace_id, recordedEpochMs: Date.now() };
    const series = this.#seriesOf({
      endpoint: record.endpoint,
      status: record.status,
      errorType,
      failure: errorType ?? toFailure(record),
      attempt: toLastAttemptOutcome(record),
      replica: record.replica,
      tenant: this.#tenants.toLabel(record.tenant, hasSucceeded),
      model,
      currency: record.currency,
    });
    addTo(series, record, trace);
    addFailedAttempts(this.#metrics, record);
    if (isOperation(record)) {
      const labels = {
        endpoint: record.endpoint,
        model,
        responseModel: this.#responseModels.toLabel(record.response_model, hasSucceeded),
        replicaUrl: record.replica === undefined ? undefined : this.#settings.replicaUrl(record.replica),
        errorType: toFailureType(record),
      };
      this.#clientMetrics.record(labels, record, trace);
    }
  }

  /** Every metric that has a value, read when the caller asks for it. A metric with many series comes in several pieces. */
  *collect(interval: Interval): Generator<MetricData> {
    for (const metric of Object.values(this.#metrics)) yield* metric.collect(interval, SERIES_PER_PIECE);
    yield* this.#clientMetrics.collect(interval);
  }

  #seriesOf(labels: RequestLabels): RequestSeries {
    const { endpoint, status, errorType, failure, attempt, replica, tenant, model, currency } = labels;
    // The model comes last: only a model can contain the separator.
    const key = `${endpoint}\n${status}\n${errorType}\n${failure}\n${attempt}\n${replica}\n${currency}\n${tenant}\n${model}`;
    const known = this.#seriesByLabels.get(key);
    if (known !== undefined) return known;
    // This empties only the cache. The series stay.
    if (this.#seriesByLabels.size >= MAX_CACHED_SERIES) this.#seriesByLabels.clear();
    const series = bindAll(this.#metrics, labels, this.#settings);
    this.#seriesByLabels.set(key, series);
    return series;
  }
}

/** Why a request that is no error on its span had no success: a 4xx, or a client that disconnected. */
function toFailure(record: Readonly<RequestRecord>): string | undefined {
  return record.error_type ?? (record.status >= 400 ? String(record.status) : undefined);
}
