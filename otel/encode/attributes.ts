import { RECORD_FIELDS, SEMCONV } from './attribute-names.ts';
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

type Fact = string | number | boolean | readonly string[] | Readonly<Record<string, number>> | undefined;

/** One attribute of a request's span: its name, its type in OTLP, and how it is read. */
interface RecordAttribute {
  readonly name: string;
  readonly type: WireType;
  /** Whether it differs in nearly every request. */
  readonly varies?: boolean;
  readonly read: (record: Readonly<RequestRecord>, http: HttpFacts) => Fact;
}

/** `gen_ai.provider.name`: the format of the API, not its implementation (the convention's note 2). */
export const PROVIDER_NAME = 'openai';

/** The record's fields, in the order of the registry. */
const FIELDS: readonly RecordAttribute[] = Object.values(RECORD_FIELDS);

/** The same facts under the names of the semantic conventions. */
const CONVENTIONAL: readonly RecordAttribute[] = [
  { name: SEMCONV.httpRoute, type: 'string', read: ({ endpoint }) => endpoint },
  { name: SEMCONV.urlPath, type: 'string', read: ({ endpoint }) => endpoint },
  { name: SEMCONV.urlScheme, type: 'string', read: (_, { scheme }) => scheme },
  { name: SEMCONV.serverAddress, type: 'string', read: (_, { serverAddress }) => serverAddress },
  { name: SEMCONV.errorType, type: 'string', read: toErrorType },
  { name: SEMCONV.genAiOperationName, type: 'string', read: ({ endpoint }) => OPERATIONS.get(endpoint) },
  { name: SEMCONV.genAiRequestModel, type: 'string', read: ({ model }) => model },
  { name: SEMCONV.httpResponseStatusCode, type: 'int', read: ({ status }) => status },
  { name: SEMCONV.serverPort, type: 'int', read: (_, { serverPort }) => serverPort },
  { name: SEMCONV.genAiRequestMaxTokens, type: 'int', read: (record) => record.max_tokens },
  { name: SEMCONV.genAiRequestStream, type: 'bool', read: ({ stream }) => stream || undefined },
  { name: SEMCONV.genAiResponseFinishReasons, type: 'strings', read: (record) => record.finish_reasons },
  { name: SEMCONV.genAiUsageInputTokens, type: 'int', varies: true, read: (record) => record.prompt_tokens },
  {
    name: SEMCONV.genAiUsageOutputTokens,
    type: 'int',
    varies: true,
    read: (record) => record.completion_tokens,
  },
  {
    name: SEMCONV.genAiUsageCacheReadInputTokens,
    type: 'int',
    varies: true,
    read: (record) => record.cached_tokens,
  },
];

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
  readonly #read: RecordAttribute['read'];
  readonly #before: string;
  #fact: Fact;
  /** KeyValues in JSON, each after a comma; empty if the value is unknown. */
  json = '';

  constructor({ name, type, read }: RecordAttribute) {
    this.#name = name;
    this.#type = type;
    this.#read = read;
    this.#before = `,{"key":${JSON.stringify(name)},"value":`;
  }

  /** Encodes the attribute of another record, and returns whether the JSON changed. */
  update(record: Readonly<RequestRecord>, http: HttpFacts): boolean {
    const fact = this.#read(record, http);
    if (fact === this.#fact) return false;
    const before = this.json;
    this.#fact = fact;
    this.json = this.#encode(fact);
    return this.json !== before;
  }

  #encode(fact: Fact): string {
    if (fact === undefined) return '';
    if (this.#type === 'doubles') return encodeTimings(this.#name, fact);
    const value = encodeFact(this.#type, fact);
    return value === null ? '' : `${this.#before}${value}}`;
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
  const varying = attributes.filter(({ varies }) => varies).map((each) => new AttributeEncoder(each));
  const lasting = attributes.filter(({ varies }) => !varies).map((each) => new AttributeEncoder(each));
  let lastingJson = CONSTANT_ATTRIBUTES;
  return (record, http) => {
    let hasChanged = false;
    for (const encoder of lasting) if (encoder.update(record, http)) hasChanged = true;
    if (hasChanged) lastingJson = CONSTANT_ATTRIBUTES + lasting.map(({ json }) => json).join('');
    let json = lastingJson;
    for (const encoder of varying) {
      encoder.update(record, http);
      json += encoder.json;
    }
    return `${json}]`;
  };
}

const namesOf = (type: WireType) => FIELDS.filter((field) => field.type === type).map(({ name }) => name);
const DOUBLE_NAMES: ReadonlySet<string> = new Set(namesOf('double'));
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
function encodeFact(type: Exclude<WireType, 'doubles'>, fact: Fact): string | null {
  switch (type) {
    case 'string':
      return typeof fact === 'string' ? `{"stringValue":${quote(fact)}}` : null;
    case 'int':
      return Number.isSafeInteger(fact) ? `{"intValue":"${fact}"}` : null;
    case 'double':
      return Number.isFinite(fact) ? `{"doubleValue":${fact}}` : null;
    case 'bool':
      return typeof fact === 'boolean' ? `{"boolValue":${fact}}` : null;
    case 'strings':
      return Array.isArray(fact) ? `{"arrayValue":{"values":[${encodeStrings(fact)}]}}` : null;
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

function encodeTimings(prefix: string, timings: Fact): string {
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
