import type { Attributes } from '@opentelemetry/api';
import { RECORD_FIELDS, SEMCONV } from './attribute-names.ts';
import type { RequestRecord } from './request-record.ts';

/** How a value goes over the wire. */
type WireType = (typeof RECORD_FIELDS)[keyof RequestRecord]['type'];

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

const isField = (name: string): name is keyof RequestRecord => Object.hasOwn(RECORD_FIELDS, name);

/** The record's fields, in the order of the registry. */
const WIRE_FIELDS = Object.keys(RECORD_FIELDS)
  .filter(isField)
  .map((field) => ({ field, ...RECORD_FIELDS[field] }));

const namesOf = (type: WireType) =>
  WIRE_FIELDS.filter((field) => field.type === type).map(({ name }): string => name);

const DOUBLE_NAMES: ReadonlySet<string> = new Set(namesOf('double'));
const DOUBLE_PREFIXES = namesOf('doubles');

/** Longer strings are cut: the record's own are at most 256, the rest is what nobody foresaw. */
const MAX_STRING_CHARS = 1024;
/** Longer lists are cut; the configuration allows no more prefix hashes than this. */
const MAX_ITEMS = 4096;
/** An engine reports about a dozen timings; a map without end would be an attribute each. */
const MAX_TIMINGS = 64;
const MAX_TIMING_KEY_CHARS = 64;

/** `gen_ai.operation.name` by the recorded endpoint. */
const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'text_completion'],
  ['/v1/embeddings', 'embeddings'],
]);

/**
 * The attributes of a request's span: each field of the record as `gateway.…`, and the same facts under the
 * names of the semantic conventions. What is unknown is absent. Nothing gets through that makes a Collector
 * refuse the whole batch: NaN, infinities, integers beyond 2^53, lone surrogates, strings and lists without end.
 */
export function toAttributes(record: Readonly<RequestRecord>, http: HttpFacts): Attributes {
  const attributes: Attributes = {};
  for (const { field, name, type } of WIRE_FIELDS) addField(attributes, name, type, record[field]);
  addConventional(attributes, record, http);
  return attributes;
}

/** Whether the attribute's numbers are doubles, integral ones too: the SDK cannot tell 85 from 85.0. */
export function isDoubleName(name: string): boolean {
  return DOUBLE_NAMES.has(name) || DOUBLE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/**
 * The `error.type` of a request that failed, else undefined: our code or the replica's status for 5xx, for an
 * error in the middle of a response, and for a response that broke off. A 4xx is no error of a server's span
 * (semantic conventions, HTTP spans, "Status").
 */
export function toErrorType(record: Readonly<RequestRecord>): string | undefined {
  const isServerError = record.status >= 500;
  const isMidResponseError = record.status < 400 && record.error_type !== undefined;
  if (!isServerError && !isMidResponseError && record.truncated !== true) return undefined;
  return record.error_type ?? (isServerError ? String(record.status) : '_OTHER');
}

function addField(attributes: Attributes, name: string, type: WireType, value: unknown): void {
  if (type === 'doubles') addTimings(attributes, name, value);
  else {
    const clean = toClean(type, value);
    if (clean !== undefined) attributes[name] = clean;
  }
}

function addTimings(attributes: Attributes, prefix: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, number] of Object.entries(value).slice(0, MAX_TIMINGS)) {
    const clean = toClean('double', number);
    if (clean !== undefined) attributes[prefix + cutString(key, MAX_TIMING_KEY_CHARS)] = clean;
  }
}

function addConventional(attributes: Attributes, record: Readonly<RequestRecord>, http: HttpFacts): void {
  const strings: readonly (readonly [string, string | undefined])[] = [
    [SEMCONV.httpRequestMethod, 'POST'],
    [SEMCONV.httpRoute, record.endpoint],
    [SEMCONV.urlPath, record.endpoint],
    [SEMCONV.urlScheme, http.scheme],
    [SEMCONV.serverAddress, http.serverAddress],
    [SEMCONV.errorType, toErrorType(record)],
    [SEMCONV.genAiOperationName, OPERATIONS.get(record.endpoint)],
    // The flavour of the API, whoever implements it (gen_ai.provider.name, note 2).
    [SEMCONV.genAiProviderName, 'openai'],
    [SEMCONV.genAiRequestModel, record.model],
  ];
  const ints: readonly (readonly [string, number | undefined])[] = [
    [SEMCONV.httpResponseStatusCode, record.status],
    [SEMCONV.serverPort, http.serverPort],
    [SEMCONV.genAiRequestMaxTokens, record.max_tokens],
    [SEMCONV.genAiUsageInputTokens, record.prompt_tokens],
    [SEMCONV.genAiUsageOutputTokens, record.completion_tokens],
    [SEMCONV.genAiUsageCacheReadInputTokens, record.cached_tokens],
  ];
  for (const [name, value] of strings) if (value !== undefined) attributes[name] = cutString(value);
  for (const [name, value] of ints) if (Number.isSafeInteger(value)) attributes[name] = value;
  if (record.stream) attributes[SEMCONV.genAiRequestStream] = true;
  const finishReasons = toClean('strings', record.finish_reasons);
  if (finishReasons !== undefined) attributes[SEMCONV.genAiResponseFinishReasons] = finishReasons;
}

/** The value if it is one of its type, made harmless; else undefined. */
function toClean(
  type: Exclude<WireType, 'doubles'>,
  value: unknown,
): string | number | boolean | string[] | undefined {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? cutString(value) : undefined;
    case 'int':
      return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
    case 'double':
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    case 'bool':
      return typeof value === 'boolean' ? value : undefined;
    case 'strings':
      return Array.isArray(value) ? toStrings(value) : undefined;
  }
}

function toStrings(items: readonly unknown[]): string[] {
  return items.slice(0, MAX_ITEMS).flatMap((item) => (typeof item === 'string' ? [cutString(item)] : []));
}

/** At most so many UTF-16 units, and no half of a surrogate pair at the cut or anywhere else. */
function cutString(text: string, maxChars = MAX_STRING_CHARS): string {
  return (text.length > maxChars ? text.slice(0, maxChars) : text).toWellFormed();
}
