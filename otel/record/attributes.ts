import {
  FAILED_ATTEMPT,
  type FieldValue,
  fieldValuesOf,
  OPERATIONS,
  providerOf,
  RECORD_FIELDS,
  type RequestRecord,
  SEMCONV,
} from '#otel/record/registry';
import { toDecodeSeconds, toPrefillSeconds, toQueueSeconds } from './layout/engine-latency.ts';

/** The type of a value in OTLP. */
export type WireType = (typeof RECORD_FIELDS)[keyof RequestRecord]['type'];

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

/** An attribute of a request's span. */
export interface RecordAttribute {
  readonly name: string;
  readonly type: WireType;
  /** Whether every record has it. */
  readonly isRequired: boolean;
  /** Whether the value differs in nearly every request. */
  readonly varies: boolean;
}

/** The record's fields, in the order of the registry. */
const FIELDS: readonly RecordAttribute[] = Object.values(RECORD_FIELDS);

/** What the semantic conventions say of HTTP, and of errors. */
const HTTP: readonly RecordAttribute[] = [
  always('string', SEMCONV.httpRequestMethod),
  always('string', SEMCONV.httpRoute),
  always('string', SEMCONV.urlPath),
  always('string', SEMCONV.urlScheme),
  lasting('string', SEMCONV.serverAddress),
  lasting('string', SEMCONV.errorType),
  always('int', SEMCONV.httpResponseStatusCode),
  lasting('int', SEMCONV.serverPort),
];

/** The attributes that the request's span has in every layout. */
export const REQUEST_ATTRIBUTES: readonly RecordAttribute[] = [...FIELDS, ...HTTP];

/** What they say of GenAI, in the pinned version, and what engines say of their latency. */
export const GEN_AI_ATTRIBUTES: readonly RecordAttribute[] = [
  always('string', SEMCONV.genAiProviderName),
  always('string', SEMCONV.genAiOperationName),
  lasting('string', SEMCONV.genAiRequestModel),
  lasting('int', SEMCONV.genAiRequestMaxTokens),
  lasting('bool', SEMCONV.genAiRequestStream),
  lasting('strings', SEMCONV.genAiResponseFinishReasons),
  varying('int', SEMCONV.genAiUsageInputTokens),
  varying('int', SEMCONV.genAiUsageOutputTokens),
  varying('int', SEMCONV.genAiUsageCacheReadInputTokens),
  varying('int', SEMCONV.genAiUsageCacheCreationInputTokens),
  lasting('string', SEMCONV.genAiResponseModel),
  lasting('string', SEMCONV.genAiConversationId),
  varying('string', SEMCONV.genAiResponseId),
  varying('double', SEMCONV.genAiLatencyTimeInQueue),
  varying('double', SEMCONV.genAiLatencyTimeInModelPrefill),
  varying('double', SEMCONV.genAiLatencyTimeInModelDecode),
];

/** What only the newest names have, after the others. */
export const LATEST_ATTRIBUTES: readonly RecordAttribute[] = [
  varying('int', SEMCONV.genAiUsageReasoningOutputTokens),
  varying('double', SEMCONV.genAiResponseTimeToFirstChunk),
  varying('string', SEMCONV.genAiRequestPreviousResponseId),
  lasting('string', SEMCONV.genAiRequestReasoningLevel),
];

function always(type: WireType, name: string): RecordAttribute {
  return { name, type, isRequired: true, varies: false };
}

function lasting(type: WireType, name: string): RecordAttribute {
  return { name, type, isRequired: false, varies: false };
}

function varying(type: WireType, name: string): RecordAttribute {
  return { name, type, isRequired: false, varies: true };
}

/** The values of REQUEST_ATTRIBUTES and then GEN_AI_ATTRIBUTES, in their order. */
export function attributeValuesOf(record: Readonly<RequestRecord>, http: HttpFacts): FieldValue[] {
  const values = fieldValuesOf(record);
  values.push(
    'POST',
    record.endpoint,
    record.endpoint,
    http.scheme,
    http.serverAddress,
    toErrorType(record),
    record.status,
    http.serverPort,
    providerOf(record.endpoint),
    OPERATIONS.get(record.endpoint),
    record.model,
    record.max_tokens,
    record.stream || undefined,
    record.finish_reasons,
    record.prompt_tokens,
    record.completion_tokens,
    record.cached_tokens,
    record.cache_creation_tokens,
    record.response_model,
    record.conversation_id,
    record.response_id,
  );
  const { timings } = record;
  if (timings === undefined) values.push(undefined, undefined, undefined);
  else values.push(toQueueSeconds(timings), toPrefillSeconds(timings), toDecodeSeconds(timings));
  return values;
}

/** The values of LATEST_ATTRIBUTES, in their order. */
export function latestValuesOf(record: Readonly<RequestRecord>): readonly FieldValue[] {
  return [
    record.reasoning_tokens,
    record.ttft_ms === undefined ? undefined : record.ttft_ms / 1000,
    record.previous_response_id,
    record.reasoning_level,
  ];
}

/** Longer strings are cut. The record's names are at most 256; this limit is for everything else. */
export const MAX_STRING_CHARS = 1024;
/** Longer lists are cut. The configuration allows no more prefix hashes than this. */
export const MAX_ITEMS = 4096;
/** Longer keys of an engine are cut. */
export const MAX_TIMING_KEY_CHARS = 64;

const namesOf = (type: WireType) => FIELDS.filter((field) => field.type === type).map(({ name }) => name);
const DOUBLE_NAMES: ReadonlySet<string> = new Set([
  ...namesOf('double'),
  FAILED_ATTEMPT.durationMs,
  ...[...GEN_AI_ATTRIBUTES, ...LATEST_ATTRIBUTES].flatMap(({ name, type }) =>
    type === 'double' ? name : [],
  ),
]);
const DOUBLE_PREFIXES = namesOf('doubles');

/** Whether the attribute's numbers are doubles, even integral ones. The SDK cannot tell 85 from 85.0. */
export function isDoubleName(name: string): boolean {
  return DOUBLE_NAMES.has(name) || DOUBLE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/**
 * Returns the `error.type` of a failed request, otherwise undefined. A request has failed if its status is 5xx, if an
 * error occurred in the middle of the response, or if the response was truncated. The type is the gateway's code or
 * the replica's status. A 4xx is not an error on a SERVER span (semantic conventions, HTTP spans, "Status").
 */
export function toErrorType(record: Readonly<RequestRecord>): string | undefined {
  const isServerError = record.status >= 500;
  const isMidResponseError = record.status < 400 && record.error_type !== undefined;
  if (!isServerError && !isMidResponseError && record.truncated !== true) return undefined;
  return record.error_type ?? (isServerError ? String(record.status) : '_OTHER');
}

/**
 * Returns the `error.type` of a request that failed from the caller's point of view, otherwise undefined. That includes
 * each 4xx (semantic conventions, HTTP spans, "Status"), and not a client that left ("intentional cancellation").
 */
export function toFailureType(record: Readonly<RequestRecord>): string | undefined {
  if (record.status === 499 || record.error_type === 'client_closed') return undefined;
  const { error_type, status } = record;
  return toErrorType(record) ?? error_type ?? (status >= 400 ? String(status) : undefined);
}
