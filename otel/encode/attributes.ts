import { FAILED_ATTEMPT, type FieldValue, fieldValuesOf, RECORD_FIELDS, SEMCONV } from './attribute-names.ts';
import { OPERATIONS } from './operations.ts';
import { MAX_TIMINGS } from './record-bounds.ts';
import type { RequestRecord } from './request-record.ts';

/** The type of a value in OTLP. */
type WireType = (typeof RECORD_FIELDS)[keyof RequestRecord]['type'];

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

/** An attribute of a request's span. */
interface RecordAttribute {
  readonly name: string;
  readonly type: WireType;
  /** Whether the value differs in nearly every request. */
  readonly varies: boolean;
}

/** `gen_ai.provider.name`: the format of the API, not its implementation (the convention's note 2). */
export const PROVIDER_NAME = 'openai';

/** The record's fields, in the order of the registry. */
const FIELDS: readonly RecordAttribute[] = Object.values(RECORD_FIELDS);

/** The same facts under the names of the semantic conventions. */
const CONVENTIONAL: readonly RecordAttribute[] = [
  { name: SEMCONV.httpRoute, type: 'string', varies: false },
  { name: SEMCONV.urlPath, type: 'string', varies: false },
  { name: SEMCONV.urlScheme, type: 'string', varies: false },
  { name: SEMCONV.serverAddress, type: 'string', varies: false },
  { name: SEMCONV.errorType, type: 'string', varies: false },
  { name: SEMCONV.genAiOperationName, type: 'string', varies: false },
  { name: SEMCONV.genAiRequestModel, type: 'string', varies: false },
  { name: SEMCONV.httpResponseStatusCode, type: 'int', varies: false },
  { name: SEMCONV.serverPort, type: 'int', varies: false },
  { name: SEMCONV.genAiRequestMaxTokens, type: 'int', varies: false },
  { name: SEMCONV.genAiRequestStream, type: 'bool', varies: false },
  { name: SEMCONV.genAiResponseFinishReasons, type: 'strings', varies: false },
  { name: SEMCONV.genAiUsageInputTokens, type: 'int', varies: true },
  { name: SEMCONV.genAiUsageOutputTokens, type: 'int', varies: true },
  { name: SEMCONV.genAiUsageCacheReadInputTokens, type: 'int', varies: true },
];

/** The values of all attributes: those of FIELDS, then those of CONVENTIONAL, in their order. */
function valuesOf(record: Readonly<RequestRecord>, http: HttpFacts): readonly FieldValue[] {
  const values = fieldValuesOf(record);
  values.push(
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
  );
  return values;
}

/** Longer strings are cut. The record's names are at most 256; this limit is for everything else. */
const MAX_STRING_CHARS = 1024;
/** Longer lists are cut. The configuration allows no more prefix hashes than this. */
const MAX_ITEMS = 4096;
const MAX_TIMING_KEY_CHARS = 64;

/** The attributes that every span has, at the beginning of the list. */
const CONSTANT_ATTRIBUTES = `[${[
  [SEMCONV.httpRequestMethod, 'POST'],
  [SEMCONV.genAiProviderName, PROVIDER_NAME],
].map(([key, stringValue]) => JSON.stringify({ key, value: { stringValue } }))}`;

/** Encodes one attribute, and keeps its JSON while the value stays the same. */
class AttributeEncoder {
  readonly #name: string;
  readonly #type: WireType;
  readonly #before: string;
  #value: FieldValue;
  /** KeyValues in JSON, each after a comma; empty if the value is unknown. */
  json = '';

  constructor({ name, type }: RecordAttribute) {
    this.#name = name;
    this.#type = type;
    this.#before = `,{"key":${JSON.stringify(name)},"value":`;
  }

  /** Encodes the value in another record, and returns whether the JSON changed. */
  update(value: FieldValue): boolean {
    if (value === this.#value) return false;
    const before = this.json;
    this.#value = value;
    this.json = this.#encode(value);
    return this.json !== before;
  }

  #encode(value: FieldValue): string {
    if (value === undefined) return '';
    if (this.#type === 'doubles') return encodeTimings(this.#name, value);
    const json = encodeValue(this.#type, value);
    return json === null ? '' : `${this.#before}${json}}`;
  }
}

/**
 * Encodes the attributes of a request's span as OTLP's list of KeyValue, in JSON: each field of the record as
 * `gateway.…`, and the same facts under the names of the semantic conventions. Unknown values are absent. Values that
 * make a Collector refuse the whole batch are left out or cut: NaN, infinities, integers beyond 2^53, lone surrogates,
 * unlimited strings and lists.
 *
 * The JSON is written from the record directly. Going through the span's `attributes`, an object of 45 members that V8
 * keeps as a hash table, took three times as long. The attributes that rarely change between requests are kept as one
 * text, which is rewritten when any of them changes.
 */
export function createAttributesEncoder(): (record: Readonly<RequestRecord>, http: HttpFacts) => string {
  const attributes = [...FIELDS, ...CONVENTIONAL];
  const encoders = attributes.map((each) => new AttributeEncoder(each));
  const indexesOf = (varies: boolean) =>
    [...attributes.keys()].filter((i) => attributes[i]?.varies === varies);
  const varying = indexesOf(true);
  const lasting = indexesOf(false);
  const encoderAt = (index: number) => encoders[index] as AttributeEncoder;
  let lastingJson = CONSTANT_ATTRIBUTES;
  return (record, http) => {
    const values = valuesOf(record, http);
    let hasChanged = false;
    for (const index of lasting) if (encoderAt(index).update(values[index])) hasChanged = true;
    if (hasChanged) {
      lastingJson = CONSTANT_ATTRIBUTES + lasting.map((index) => encoderAt(index).json).join('');
    }
    let json = lastingJson;
    for (const index of varying) {
      const encoder = encoderAt(index);
      encoder.update(values[index]);
      json += encoder.json;
    }
    return `${json}]`;
  };
}

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

/** Encodes a value as OTLP's AnyValue; null if it does not have the type. */
function encodeValue(type: Exclude<WireType, 'doubles'>, value: FieldValue): string | null {
  switch (type) {
    case 'string':
      return typeof value === 'string' ? `{"stringValue":${quote(value)}}` : null;
    case 'int':
      return Number.isSafeInteger(value) ? `{"intValue":"${value}"}` : null;
    case 'double':
      return Number.isFinite(value) ? `{"doubleValue":${value}}` : null;
    case 'bool':
      return typeof value === 'boolean' ? `{"boolValue":${value}}` : null;
    case 'strings':
      return Array.isArray(value) ? `{"arrayValue":{"values":[${encodeStrings(value)}]}}` : null;
  }
}

function encodeStrings(items: readonly unknown[]): string {
  let json = '';
  let count = 0;
  for (const item of items) {
    if (typeof item !== 'string') continue;
    if (count++ === MAX_ITEMS) break;
    json += `,{"stringValue":${quote(item)}}`;
  }
  return json.slice(1);
}

function encodeTimings(prefix: string, timings: FieldValue): string {
  if (typeof timings !== 'object') return '';
  let json = '';
  for (const [key, number] of Object.entries(timings).slice(0, MAX_TIMINGS)) {
    if (!Number.isFinite(number)) continue;
    const name = JSON.stringify(prefix + cut(key, MAX_TIMING_KEY_CHARS));
    json += `,{"key":${name},"value":{"doubleValue":${number}}}`;
  }
  return json;
}

/** A text that needs no escapes in JSON: the usual case, and this test is faster than JSON.stringify. */
const PLAIN = new RegExp(`^[ !#-[\\]-~]{0,${MAX_STRING_CHARS}}$`);

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(cut(text, MAX_STRING_CHARS));
}

/** Cuts a text to `maxChars` UTF-16 units, without lone surrogates. */
function cut(text: string, maxChars: number): string {
  return (text.length > maxChars ? text.slice(0, maxChars) : text).toWellFormed();
}
