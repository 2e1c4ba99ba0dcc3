import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { type AttemptOutcome, toFailedAttemptOutcome } from '#otel/outcome';
import { OPERATIONS, providerOf, RECORD_FIELDS, type RequestRecord, SEMCONV } from '#otel/record/registry';
import { type BoundMetric, createCounter, createHistogram } from './metric.ts';
import type { RequestTrace } from './metric-data.ts';
import { ATTEMPT, METRICS } from './metric-table.ts';

/** The source of the attributes of a request's series. */
export interface RequestLabels {
  readonly endpoint: string;
  readonly status: number;
  /** `error.type` as on the span. */
  readonly errorType: string | undefined;
  /** Undefined for a success: a complete response below 400. */
  readonly failure: string | undefined;
  /** Of the last attempt; null: it failed, and an earlier one may be the one that was relayed; or there was none. */
  readonly attempt: AttemptOutcome | null;
  readonly replica: string | undefined;
  readonly tenant: string | undefined;
  readonly model: string | undefined;
  /** Of its cost. A response in the background may have begun before a restart with another one. */
  readonly currency: string | undefined;
}

/** What all requests have in common. */
export interface CommonLabels {
  /** The scheme of the clients' URLs. */
  readonly urlScheme: 'http' | 'https';
}

/** 1,024 replicas with all outcomes: not clients bound them, but the configuration. */
const MAX_ATTEMPT_SERIES = 8_192;

/** The metrics that are sums of records. */
export function createMetrics() {
  return {
    httpDuration: createHistogram(METRICS.httpServerRequestDuration),
    duration: createHistogram(METRICS.genAiServerRequestDuration),
    timeToFirstToken: createHistogram(METRICS.genAiServerTimeToFirstToken),
    tenantDuration: createHistogram(METRICS.tenantRequestDuration),
    tenantTimeToFirstToken: createHistogram(METRICS.tenantTimeToFirstToken),
    timePerOutputToken: createHistogram(METRICS.genAiServerTimePerOutputToken),
    gapP50: createHistogram(METRICS.gapP50),
    gapP95: createHistogram(METRICS.gapP95),
    requests: createCounter(METRICS.requests),
    failures: createCounter(METRICS.failures),
    attempts: createCounter(METRICS.attempts, MAX_ATTEMPT_SERIES),
    promptTokens: createCounter(METRICS.tokensPrompt),
    cachedTokens: createCounter(METRICS.tokensCached),
    completionTokens: createCounter(METRICS.tokensCompletion),
    reasoningTokens: createCounter(METRICS.tokensReasoning),
    tenantPromptTokens: createCounter(METRICS.tenantTokensPrompt),
    tenantCachedTokens: createCounter(METRICS.tenantTokensCached),
    tenantCompletionTokens: createCounter(METRICS.tenantTokensCompletion),
    gpuSeconds: createCounter(METRICS.gpu),
    cost: createCounter(METRICS.cost),
  };
}

type RecordSums = ReturnType<typeof createMetrics>;

/** The series of one combination of labels. */
export type RequestSeries = ReturnType<typeof bindAll>;

/** The series of all requests with these labels. */
export function bindAll(metrics: RecordSums, labels: RequestLabels, { urlScheme }: CommonLabels) {
  const { endpoint, status, errorType, failure, attempt, replica, tenant, model, currency } = labels;
  const served = withoutUnknown({
    [SEMCONV.genAiOperationName]: OPERATIONS.get(endpoint),
    [SEMCONV.genAiProviderName]: providerOf(endpoint),
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
  const failureReason = withoutUnknown({
    [SEMCONV.errorType]: failure,
    [SEMCONV.httpResponseStatusCode]: status,
    [RECORD_FIELDS.replica.name]: replica,
    [SEMCONV.genAiRequestModel]: model,
  });
  const ofTenant = withoutUnknown({ [RECORD_FIELDS.tenant.name]: tenant });
  return {
    hasSucceeded: failure === undefined,
    httpDuration: metrics.httpDuration.bind(http),
    duration: metrics.duration.bind(withoutUnknown({ ...served, [SEMCONV.errorType]: failure })),
    tenantDuration: metrics.tenantDuration.bind(
      withoutUnknown({ ...ofTenant, [SEMCONV.errorType]: failure }),
    ),
    tenantTimeToFirstToken: metrics.tenantTimeToFirstToken.bind(ofTenant),
    timeToFirstToken: metrics.timeToFirstToken.bind(served),
    timePerOutputToken: metrics.timePerOutputToken.bind(served),
    gapP50: metrics.gapP50.bind(served),
    gapP95: metrics.gapP95.bind(served),
    requests: metrics.requests.bind(request),
    failures: metrics.failures.bind(failureReason),
    lastAttempt: replica === undefined || attempt === null ? null : bindAttempt(metrics, replica, attempt),
    promptTokens: metrics.promptTokens.bind(usage),
    cachedTokens: metrics.cachedTokens.bind(usage),
    completionTokens: metrics.completionTokens.bind(usage),
    reasoningTokens: metrics.reasoningTokens.bind(usage),
    tenantPromptTokens: metrics.tenantPromptTokens.bind(tenantUsage),
    tenantCachedTokens: metrics.tenantCachedTokens.bind(tenantUsage),
    tenantCompletionTokens: metrics.tenantCompletionTokens.bind(tenantUsage),
    gpuSeconds: metrics.gpuSeconds.bind(tenantUsage),
    cost: metrics.cost.bind(withoutUnknown({ ...tenantUsage, [RECORD_FIELDS.currency.name]: currency })),
  };
}

function bindAttempt({ attempts }: RecordSums, replica: string, outcome: AttemptOutcome): BoundMetric {
  return attempts.bind({ [RECORD_FIELDS.replica.name]: replica, [ATTEMPT.attemptOutcome]: outcome });
}

/** Counts the attempts of a record that failed, each at its replica. */
export function addFailedAttempts(metrics: RecordSums, { failed_attempts }: Readonly<RequestRecord>): void {
  if (failed_attempts === undefined) return;
  for (const failed of failed_attempts) {
    bindAttempt(metrics, failed.replica, toFailedAttemptOutcome(failed)).record(1);
  }
}

/** Adds a record to the series of its labels. Its failed attempts are not among them. */
export function addTo(series: RequestSeries, record: Readonly<RequestRecord>, trace: RequestTrace): void {
  const { ttft_ms, prompt_tokens, cached_tokens, completion_tokens } = record;
  const durationSeconds = toSeconds(record.e2e_ms);
  series.requests.record(1);
  series.httpDuration.record(durationSeconds, trace);
  series.duration.record(durationSeconds, trace);
  series.tenantDuration.record(durationSeconds, trace);
  if (!series.hasSucceeded) series.failures.record(1);
  series.lastAttempt?.record(1);
  series.gapP50.record(toSeconds(record.gap_p50_ms));
  series.gapP95.record(toSeconds(record.gap_p95_ms));
  series.promptTokens.record(prompt_tokens);
  series.cachedTokens.record(cached_tokens);
  series.completionTokens.record(completion_tokens);
  series.reasoningTokens.record(record.reasoning_tokens);
  series.tenantPromptTokens.record(prompt_tokens);
  series.tenantCachedTokens.record(cached_tokens);
  series.tenantCompletionTokens.record(completion_tokens);
  series.gpuSeconds.record(record.gpu_seconds);
  series.cost.record(record.cost);
  // The conventions define these for successful responses only.
  if (!series.hasSucceeded || ttft_ms === undefined) return;
  const ttftSeconds = toSeconds(ttft_ms);
  series.timeToFirstToken.record(ttftSeconds, trace);
  series.tenantTimeToFirstToken.record(ttftSeconds, trace);
  if (completion_tokens === undefined || completion_tokens < 2) return;
  series.timePerOutputToken.record((durationSeconds - ttftSeconds) / (completion_tokens - 1));
}

function toSeconds(ms: number): number;
function toSeconds(ms: number | undefined): number | undefined;
function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function withoutUnknown(attributes: Readonly<Record<string, AttributeValue | undefined>>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
