import type { Attributes } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { toErrorType } from '#otel/outcome';
import { OPERATIONS, providerOf, RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { readFailedAttempts } from './failed-attempts.ts';
import type { GenAiNames } from './gen-ai-names.ts';
import {
  type DerivedValues,
  type Dialects,
  type DialectValues,
  DOUBLE_NAMES,
  setDialectAttributes,
  toAttributes,
  toFields,
} from './record-attributes.ts';
import type { RequestNotes, RequestParameters } from './request-notes.ts';

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  /** What the request says of itself, and is no field of its record; undefined: nothing. */
  readonly notes?: RequestNotes | undefined;
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

/**
 * The attributes of a request's span. `genAi`: the names of what the conventions say of GenAI; null: another span of the
 * request has it. Only one has it, because backends add up its usage. `dialects`: those that it has, too; null: none.
 */
export function toRequestAttributes(
  record: Readonly<RequestRecord>,
  http: HttpFacts,
  genAi: GenAiNames | null = 'pinned',
  dialects: Dialects | null = null,
): Attributes {
  const attributes = toAttributes(record, derive(record, http), { request: true, genAi });
  if (dialects !== null && genAi !== null) {
    setDialectAttributes(attributes, record, toDialectValues(record, http.notes), dialects);
  }
  return attributes;
}

/** The attributes of a record on the span of its operation. */
export function toOperationAttributes(
  record: Readonly<RequestRecord>,
  http: HttpFacts,
  genAi: GenAiNames,
  dialects: Dialects | null = null,
): Attributes {
  const attributes = toAttributes(record, derive(record, http), { request: false, genAi });
  if (dialects !== null) {
    setDialectAttributes(attributes, record, toDialectValues(record, http.notes), dialects);
  }
  return attributes;
}

/** What of a span tells its record. */
export type RecordSpan = Pick<ReadableSpan, 'attributes' | 'events' | 'startTime'>;

/** The record of a span, as it is sent: values that were cut stay cut. Null for the span of no request. */
export function toRecord(span: RecordSpan): RequestRecord | null {
  const fields = toFields(span.attributes);
  const failedAttempts = readFailedAttempts(span);
  if (failedAttempts !== undefined) fields.failed_attempts = failedAttempts;
  return isRecord(fields) ? fields : null;
}

/** The fields that every record has. They distinguish a request's span from other spans. */
const REQUIRED = Object.entries(RECORD_FIELDS).flatMap(([field, { isRequired }]) =>
  isRequired ? (field as keyof RequestRecord) : [],
);

function isRecord(fields: Partial<RequestRecord>): fields is RequestRecord {
  return REQUIRED.every((field) => fields[field] !== undefined);
}

/** What the conventions say of a request, and is no field of its record. */
function derive(record: Readonly<RequestRecord>, http: HttpFacts): DerivedValues {
  const { endpoint, timings, ttft_ms } = record;
  const { parameters, names } = http.notes ?? NO_NOTES;
  return {
    httpRequestMethod: 'POST',
    urlScheme: http.scheme,
    serverAddress: http.serverAddress,
    serverPort: http.serverPort,
    errorType: toErrorType(record),
    genAiProviderName: providerOf(endpoint),
    genAiOperationName: OPERATIONS.get(endpoint),
    genAiRequestStream: record.stream || undefined,
    genAiRequestTemperature: parameters?.temperature,
    genAiRequestTopP: parameters?.topP,
    genAiRequestTopK: parameters?.topK,
    genAiRequestFrequencyPenalty: parameters?.frequencyPenalty,
    genAiRequestPresencePenalty: parameters?.presencePenalty,
    genAiRequestSeed: parameters?.seed,
    genAiRequestChoiceCount: parameters?.choiceCount,
    genAiOutputType: parameters?.outputType,
    userId: names?.user,
    sessionId: names?.session,
    genAiAgentName: names?.agent,
    genAiPromptName: names?.prompt,
    genAiPromptVersion: names?.promptVersion,
    genAiLatencyTimeInQueue: timings && toQueueSeconds(timings),
    genAiLatencyTimeInModelPrefill: timings && toPrefillSeconds(timings),
    genAiLatencyTimeInModelDecode: timings && toDecodeSeconds(timings),
    genAiResponseTimeToFirstChunk: ttft_ms === undefined ? undefined : ttft_ms / 1000,
  };
}

const NO_NOTES: RequestNotes = {};

const DOUBLE_PREFIXES = Object.values(RECORD_FIELDS).flatMap(({ name, type }) =>
  type === 'doubles' ? name : [],
);

/** Whether the attribute's numbers are doubles, even integral ones. The SDK cannot tell 85 from 85.0. */
export function isDoubleName(name: string): boolean {
  return DOUBLE_NAMES.has(name) || DOUBLE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

type Timings = Readonly<Record<string, number>>;

/** How long a request waited in the engine, in seconds: `queue_time_ms` of vLLM. */
function toQueueSeconds({ queue_time_ms }: Timings): number | undefined {
  return toSeconds(queue_time_ms);
}

/**
 * How long the engine read the prompt, in seconds. vLLM's `time_to_first_token_ms` begins when the request is scheduled,
 * after its wait (vLLM documentation, "Per-Request Metrics"). llama.cpp's is `prompt_ms`.
 */
function toPrefillSeconds({ time_to_first_token_ms, prompt_ms }: Timings): number | undefined {
  return toSeconds(time_to_first_token_ms ?? prompt_ms);
}

/** How long the engine generated after the prompt, in seconds: `generation_time_ms` of vLLM, `predicted_ms` of llama.cpp. */
function toDecodeSeconds({ generation_time_ms, predicted_ms }: Timings): number | undefined {
  return toSeconds(generation_time_ms ?? predicted_ms);
}

/** What an engine says may be anything. */
function toSeconds(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= 0 ? ms / 1000 : undefined;
}

/** What dialects say of a request, and is no field of its record. Called only where one is on. */
function toDialectValues(
  record: Readonly<RequestRecord>,
  { parameters, names }: RequestNotes = {},
): DialectValues {
  const { endpoint, ts, ttft_ms, prompt_tokens, completion_tokens, finish_reasons } = record;
  const hasBoth = prompt_tokens !== undefined && completion_tokens !== undefined;
  return {
    langfuseObservationCompletionStartTime:
      ttft_ms === undefined ? undefined : new Date(Date.parse(ts) + ttft_ms).toISOString(),
    langfuseObservationUsageDetails: toUsageDetails(record),
    langfuseObservationPromptName: names?.prompt,
    langfuseObservationPromptVersion: names?.promptVersion,
    openinferenceSpanKind: toSpanKind(endpoint),
    llmInvocationParameters: toInvocationParameters(parameters, record.max_tokens),
    llmTokenCountTotal: hasBoth ? prompt_tokens + completion_tokens : undefined,
    llmFinishReason: finish_reasons?.[0],
    spanType: toSpanKind(endpoint) === undefined ? undefined : 'llm',
  };
}

/**
 * The tokens by kind, none of them twice: Langfuse adds the kinds up where there is no total. Its kinds are those of its
 * own mapping of the conventions.
 */
function toUsageDetails(record: Readonly<RequestRecord>): string | undefined {
  const { prompt_tokens, completion_tokens } = record;
  if (prompt_tokens === undefined && completion_tokens === undefined) return undefined;
  const ofInput = {
    input_cached_tokens: record.cached_tokens,
    input_cache_creation: record.cache_creation_tokens,
  };
  const ofOutput = {
    output_reasoning_tokens: record.reasoning_tokens,
    output_audio_tokens: record.completion_audio_tokens,
  };
  return JSON.stringify({
    input: withoutParts(prompt_tokens, ofInput),
    ...ofInput,
    output: withoutParts(completion_tokens, ofOutput),
    ...ofOutput,
  });
}

function withoutParts(
  total: number | undefined,
  parts: Readonly<Record<string, number | undefined>>,
): number | undefined {
  if (total === undefined) return undefined;
  let rest = total;
  for (const part of Object.values(parts)) rest -= part ?? 0;
  return Math.max(0, rest);
}

function toSpanKind(endpoint: string): 'LLM' | 'EMBEDDING' | 'RERANKER' | undefined {
  const operation = OPERATIONS.get(endpoint);
  if (operation === 'rerank') return 'RERANKER';
  if (operation === 'embeddings') return 'EMBEDDING';
  return operation === 'chat' || operation === 'text_completion' ? 'LLM' : undefined;
}

/** As the API's own members. */
function toInvocationParameters(
  parameters: RequestParameters | undefined,
  maxTokens: number | undefined,
): string | undefined {
  const members = {
    temperature: parameters?.temperature,
    top_p: parameters?.topP,
    top_k: parameters?.topK,
    frequency_penalty: parameters?.frequencyPenalty,
    presence_penalty: parameters?.presencePenalty,
    seed: parameters?.seed,
    n: parameters?.choiceCount,
    max_tokens: maxTokens,
  };
  const text = JSON.stringify(members);
  return text === '{}' ? undefined : text;
}
