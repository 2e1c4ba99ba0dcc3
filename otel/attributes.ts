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
export const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'text_completion'],
  ['/v1/embeddings', 'embeddings'],
]);

/** `gen_ai.provider.name`: the flavour of the API, whoever implements it (the convention's note 2). */
export const PROVIDER_NAME = 'openai';

/**
 * The attributes of a request's span: each field of the record as `gateway.…`, and the same facts under the
 * names of the semantic conventions. What is unknown is absent. Nothing gets through that makes a Collector
 * refuse the whole batch: NaN, infinities, integers beyond 2^53, lone surrogates, strings and lists without end.
 */
export function toAttributes(record: Readonly<RequestRecord>, http: HttpFacts): Attributes {
  const attributes: Attributes = {};
  addAttributes(attributes, record, http);
  return attributes;
}

/** Adds what {@link toAttributes} tells to the attributes of a span. */
export function addAttributes(
  attributes: Attributes,
  record: Readonly<RequestRecord>,
  http: HttpFacts,
): void {
  for (const { field, name, type } of WIRE_FIELDS) addField(attributes, name, type, record[field]);
  addConventional(attributes, record, http);
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
  addString(attributes, SEMCONV.httpRequestMethod, 'POST');
  addString(attributes, SEMCONV.httpRoute, record.endpoint);
  addString(attributes, SEMCONV.urlPath, record.endpoint);
  addString(attributes, SEMCONV.urlScheme, http.scheme);
  addString(attributes, SEMCONV.serverAddress, http.serverAddress);
  addString(attributes, SEMCONV.errorType, toErrorType(record));
  addString(attributes, SEMCONV.genAiOperationName, OPERATIONS.get(record.endpoint));
  addString(attributes, SEMCONV.genAiProviderName, PROVIDER_NAME);
  addString(attributes, SEMCONV.genAiRequestModel, record.model);
  addInt(attributes, SEMCONV.httpResponseStatusCode, record.status);
  addInt(attributes, SEMCONV.serverPort, http.serverPort);
  addInt(attributes, SEMCONV.genAiRequestMaxTokens, record.max_tokens);
  addInt(attributes, SEMCONV.genAiUsageInputTokens, record.prompt_tokens);
  addInt(attributes, SEMCONV.genAiUsageOutputTokens, record.completion_tokens);
  addInt(attributes, SEMCONV.genAiUsageCacheReadInputTokens, record.cached_tokens);
  if (record.stream) attributes[SEMCONV.genAiRequestStream] = true;
  const finishReasons = toClean('strings', record.finish_reasons);
  if (finishReasons !== undefined) attributes[SEMCONV.genAiResponseFinishReasons] = finishReasons;
}

function addString(attributes: Attributes, name: string, value: string | undefined): void {
  if (value !== undefined) attributes[name] = cutString(value);
}

function addInt(attributes: Attributes, name: string, value: number | undefined): void {
  if (Number.isSafeInteger(value)) attributes[name] = value;
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
  const strings: string[] = [];
  for (const item of items) {
    if (strings.length === MAX_ITEMS) break;
    if (typeof item === 'string') strings.push(cutString(item));
  }
  return strings;
}

/** At most so many UTF-16 units, and no half of a surrogate pair at the cut or anywhere else. */
function cutString(text: string, maxChars = MAX_STRING_CHARS): string {
  return (text.length > maxChars ? text.slice(0, maxChars) : text).toWellFormed();
}
