import type { Attributes } from '@opentelemetry/api';
import { SEMCONV, WIRE_FIELDS, type WireField } from './attribute-names.ts';
import type { RequestRecord } from './request-record.ts';

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

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
  for (const wireField of WIRE_FIELDS) addField(attributes, wireField, record[wireField.field]);
  addConventional(attributes, record, http);
  return attributes;
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

function addField(attributes: Attributes, { name, type }: WireField, value: unknown): void {
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
    [SEMCONV.method, 'POST'],
    [SEMCONV.route, record.endpoint],
    [SEMCONV.path, record.endpoint],
    [SEMCONV.scheme, http.scheme],
    [SEMCONV.serverAddress, http.serverAddress],
    [SEMCONV.errorType, toErrorType(record)],
    [SEMCONV.operation, OPERATIONS.get(record.endpoint)],
    // The flavour of the API, whoever implements it (gen_ai.provider.name, note 2).
    [SEMCONV.provider, 'openai'],
    [SEMCONV.requestModel, record.model],
  ];
  const ints: readonly (readonly [string, number | undefined])[] = [
    [SEMCONV.status, record.status],
    [SEMCONV.serverPort, http.serverPort],
    [SEMCONV.requestMaxTokens, record.max_tokens],
    [SEMCONV.inputTokens, record.prompt_tokens],
    [SEMCONV.outputTokens, record.completion_tokens],
    [SEMCONV.cacheReadTokens, record.cached_tokens],
  ];
  for (const [name, value] of strings) if (value !== undefined) attributes[name] = cutString(value);
  for (const [name, value] of ints) if (Number.isSafeInteger(value)) attributes[name] = value;
  if (record.stream) attributes[SEMCONV.requestStream] = true;
  const finishReasons = toClean('strings', record.finish_reasons);
  if (finishReasons !== undefined) attributes[SEMCONV.finishReasons] = finishReasons;
}

/** The value if it is one of its type, made harmless; else undefined. */
function toClean(
  type: Exclude<WireField['type'], 'doubles'>,
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
