import { FAILED_ATTEMPT, type FieldValue, fieldValuesOf, RECORD_FIELDS, SEMCONV } from './attribute-names.ts';
import { OPERATIONS, providerOf } from './operations.ts';
import type { RequestRecord } from './request-record.ts';

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

/** The same facts under the names of the semantic conventions. */
const CONVENTIONAL: readonly RecordAttribute[] = [
  always('string', SEMCONV.httpRequestMethod),
  always('string', SEMCONV.genAiProviderName),
  always('string', SEMCONV.httpRoute),
  always('string', SEMCONV.urlPath),
  always('string', SEMCONV.urlScheme),
  lasting('string', SEMCONV.serverAddress),
  lasting('string', SEMCONV.errorType),
  always('string', SEMCONV.genAiOperationName),
  lasting('string', SEMCONV.genAiRequestModel),
  always('int', SEMCONV.httpResponseStatusCode),
  lasting('int', SEMCONV.serverPort),
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

/** All attributes that a request's span can have. */
export const RECORD_ATTRIBUTES: readonly RecordAttribute[] = [...FIELDS, ...CONVENTIONAL];

/** The values of RECORD_ATTRIBUTES, in their order. */
export function attributeValuesOf(record: Readonly<RequestRecord>, http: HttpFacts): readonly FieldValue[] {
  const values = fieldValuesOf(record);
  values.push(
    'POST',
    providerOf(record.endpoint),
    record.endpoint,
    record.endpoint,
    http.scheme,
    http.serverAddress,
    toErrorType(record),
    OPERATIONS.get(record.endpoint),
    record.model,
    record.status,
    http.serverPort,
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
  return values;
}

/** Longer strings are cut. The record's names are at most 256; this limit is for everything else. */
export const MAX_STRING_CHARS = 1024;
/** Longer lists are cut. The configuration allows no more prefix hashes than this. */
export const MAX_ITEMS = 4096;
/** Longer keys of an engine are cut. */
export const MAX_TIMING_KEY_CHARS = 64;

const namesOf = (type: WireType) => FIELDS.filter((field) => field.type === type).map(({ name }) => name);
const DOUBLE_NAMES: ReadonlySet<string> = new Set([...namesOf('double'), FAILED_ATTEMPT.durationMs]);
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
