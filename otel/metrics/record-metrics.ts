import type { Attributes, AttributeValue } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { RECORD_FIELDS, SEMCONV } from '../encode/attribute-names.ts';
import { PROVIDER_NAME, toErrorType } from '../encode/attributes.ts';
import { OPERATIONS } from '../encode/operations.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { createCounter, createHistogram } from './metric.ts';
import type { Interval } from './metric-data.ts';
import { METRICS } from './metric-names.ts';

/** The bounds of the series, and what all requests have in common. */
export interface RecordMetricsSettings {
  /** How many tenants, and how many models that `isKnownModel` does not know, get their own series. */
  readonly maxNames: number;
  /** The scheme of the clients' URLs. */
  readonly urlScheme: 'http' | 'https';
  /** Whether some replica is known to serve this model. Called for every record. */
  readonly isKnownModel: (model: string) => boolean;
}

/** The source of the attributes of a request's series. */
interface Labels {
  readonly endpoint: string;
  readonly status: number;
  readonly errorType: string | undefined;
  readonly failureCode: string | undefined;
  readonly replica: string | undefined;
  readonly tenant: string | undefined;
  readonly model: string | undefined;
}

/** How many series of one metric are copied at a time, which takes a fraction of a millisecond. */
const SERIES_PER_PIECE = 64;

/** How many combinations of labels are cached with their series. */
const MAX_CACHED_SERIES = 4096;

/** The name for all names without their own series (semantic conventions, `error.type` and others). */
const OTHER = '_OTHER';

/**
 * Counts records. It keeps the sums itself: the SDK's instruments hash the attributes of every measurement, which costs
 * many times as much (docs/metrics.md). Readers collect the sums like those of any MetricProducer.
 */
export class RecordMetrics {
  readonly #settings: RecordMetricsSettings;
  readonly #models: BoundedNames;
  readonly #tenants: BoundedNames;
  readonly #metrics = createMetrics();
  readonly #seriesByLabels = new Map<string, RequestSeries>();

  constructor(settings: RecordMetricsSettings) {
    this.#settings = settings;
    this.#models = new BoundedNames(settings.maxNames, settings.isKnownModel);
    this.#tenants = new BoundedNames(settings.maxNames);
  }

  /** Counts one record. Called for every request: it is cheap and never throws. */
  record(record: Readonly<RequestRecord>): void {
    const hasSucceeded = record.status >= 200 && record.status <= 299;
    const series = this.#seriesOf({
      endpoint: record.endpoint,
      status: record.status,
      errorType: toErrorType(record),
      failureCode: record.error_type,
      replica: record.replica,
      tenant: this.#tenants.toLabel(record.tenant, hasSucceeded),
      model: this.#models.toLabel(record.model, hasSucceeded),
    });
    addTo(series, record);
  }

  /** Every metric that has a value, read when the caller asks for it. A metric with many series comes in several pieces. */
  *collect(interval: Interval): Generator<MetricData> {
    for (const metric of Object.values(this.#metrics)) yield* metric.collect(interval, SERIES_PER_PIECE);
  }

  #seriesOf(labels: Labels): RequestSeries {
    const { endpoint, status, errorType, failureCode, replica, tenant, model } = labels;
    // The model comes last: only a model can contain the separator.
    const key = `${endpoint}\n${status}\n${errorType}\n${failureCode}\n${replica}\n${tenant}\n${model}`;
    const known = this.#seriesByLabels.get(key);
    if (known !== undefined) return known;
    // This empties only the cache. The series stay.
    if (this.#seriesByLabels.size >= MAX_CACHED_SERIES) this.#seriesByLabels.clear();
    const series = bindAll(this.#metrics, labels, this.#settings.urlScheme);
    this.#seriesByLabels.set(key, series);
    return series;
  }
}

function createMetrics() {
  return {
    httpDuration: createHistogram(METRICS.httpServerRequestDuration),
    duration: createHistogram(METRICS.genAiServerRequestDuration),
    timeToFirstToken: createHistogram(METRICS.genAiServerTimeToFirstToken),
    timePerOutputToken: createHistogram(METRICS.genAiServerTimePerOutputToken),
    gapP50: createHistogram(METRICS.gapP50),
    gapP95: createHistogram(METRICS.gapP95),
    requests: createCounter(METRICS.requests),
    failures: createCounter(METRICS.failures),
    attempts: createCounter(METRICS.attempts),
    promptTokens: createCounter(METRICS.tokensPrompt),
    cachedTokens: createCounter(METRICS.tokensCached),
    completionTokens: createCounter(METRICS.tokensCompletion),
    reasoningTokens: createCounter(METRICS.tokensReasoning),
    tenantPromptTokens: createCounter(METRICS.tenantTokensPrompt),
    tenantCachedTokens: createCounter(METRICS.tenantTokensCached),
    tenantCompletionTokens: createCounter(METRICS.tenantTokensCompletion),
  };
}

type RequestSeries = ReturnType<typeof bindAll>;

/** The series of all requests with these labels. */
function bindAll(metrics: ReturnType<typeof createMetrics>, labels: Labels, urlScheme: string) {
  const { endpoint, status, errorType, failureCode, replica, tenant, model } = labels;
  const served = withoutUnknown({
    [SEMCONV.genAiOperationName]: OPERATIONS.get(endpoint),
    [SEMCONV.genAiProviderName]: PROVIDER_NAME,
    [SEMCONV.genAiRequestModel]: model,
    [RECORD_FIELDS.replica.name]: replica,
  });
  const usage = withoutUnknown({
    [SEMCONV.genAiRequestModel]: model,
    [RECORD_FIELDS.replica.name]: replica,
  });
  // Not by replica: tenants times replicas would be too many series.
  const tenantUsage = withoutUnknown({
    [RECORD_FIELDS.tenant.name]: tenant,
    [SEMCONV.genAiRequestModel]: model,
  });
  const http = withoutUnknown({
    [SEMCONV.httpRequestMethod]: 'POST',
    [SEMCONV.urlScheme]: urlScheme,
    [SEMCONV.httpRoute]: endpoint,
    [SEMCONV.httpResponseStatusCode]: status,
    [SEMCONV.errorType]: errorType,
  });
  const request = withoutUnknown({
    [RECORD_FIELDS.tenant.name]: tenant,
    [SEMCONV.httpResponseStatusCode]: status,
  });
  const failure = withoutUnknown({
    [RECORD_FIELDS.error_type.name]: failureCode,
    [SEMCONV.httpResponseStatusCode]: status,
    [RECORD_FIELDS.replica.name]: replica,
  });
  return {
    isSuccess: errorType === undefined,
    httpDuration: metrics.httpDuration.bind(http),
    duration: metrics.duration.bind(withoutUnknown({ ...served, [SEMCONV.errorType]: errorType })),
    timeToFirstToken: metrics.timeToFirstToken.bind(served),
    timePerOutputToken: metrics.timePerOutputToken.bind(served),
    gapP50: metrics.gapP50.bind(served),
    gapP95: metrics.gapP95.bind(served),
    requests: metrics.requests.bind(request),
    failures: metrics.failures.bind(failure),
    attempts: metrics.attempts.bind(withoutUnknown({ [SEMCONV.genAiRequestModel]: model })),
    promptTokens: metrics.promptTokens.bind(usage),
    cachedTokens: metrics.cachedTokens.bind(usage),
    completionTokens: metrics.completionTokens.bind(usage),
    reasoningTokens: metrics.reasoningTokens.bind(usage),
    tenantPromptTokens: metrics.tenantPromptTokens.bind(tenantUsage),
    tenantCachedTokens: metrics.tenantCachedTokens.bind(tenantUsage),
    tenantCompletionTokens: metrics.tenantCompletionTokens.bind(tenantUsage),
  };
}

function addTo(series: RequestSeries, record: Readonly<RequestRecord>): void {
  const { ttft_ms, e2e_ms, prompt_tokens, cached_tokens, completion_tokens } = record;
  series.requests.record(1);
  series.httpDuration.record(toSeconds(e2e_ms));
  series.duration.record(toSeconds(e2e_ms));
  if (record.error_type !== undefined) series.failures.record(1);
  series.attempts.record(record.attempts);
  series.gapP50.record(toSeconds(record.gap_p50_ms));
  series.gapP95.record(toSeconds(record.gap_p95_ms));
  series.promptTokens.record(prompt_tokens);
  series.cachedTokens.record(cached_tokens);
  series.completionTokens.record(completion_tokens);
  series.reasoningTokens.record(record.reasoning_tokens);
  series.tenantPromptTokens.record(prompt_tokens);
  series.tenantCachedTokens.record(cached_tokens);
  series.tenantCompletionTokens.record(completion_tokens);
  // The conventions define these two for successful responses only.
  if (!series.isSuccess || ttft_ms === undefined) return;
  series.timeToFirstToken.record(toSeconds(ttft_ms));
  if (completion_tokens === undefined || completion_tokens < 2) return;
  series.timePerOutputToken.record(toSeconds((e2e_ms - ttft_ms) / (completion_tokens - 1)));
}

function toSeconds(ms: number): number;
function toSeconds(ms: number | undefined): number | undefined;
function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function withoutUnknown(attributes: Readonly<Record<string, AttributeValue | undefined>>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

/**
 * Bounds the names that clients choose. A name is kept if it is known, or if it is one of the first `maxCount` other
 * names with which a request succeeded. Any other name becomes `_OTHER`.
 */
class BoundedNames {
  readonly #isKnown: (name: string) => boolean;
  readonly #maxCount: number;
  readonly #admitted = new Set<string>();

  constructor(maxCount: number, isKnown: (name: string) => boolean = () => false) {
    this.#isKnown = isKnown;
    this.#maxCount = maxCount;
  }

  /** The name, or `_OTHER`; undefined stays undefined. Only a request that succeeded admits a new name. */
  toLabel(name: string | undefined, hasSucceeded: boolean): string | undefined {
    if (name === undefined || this.#admitted.has(name) || this.#isKnown(name)) return name;
    if (!hasSucceeded || this.#admitted.size >= this.#maxCount) return OTHER;
    this.#admitted.add(name);
    return name;
  }
}
