import { RECORD_FIELDS, SEMCONV } from './attribute-names.ts';
import { OPERATIONS } from './operations.ts';
import { MAX_TIMINGS } from './record-bounds.ts';
import type { RequestRecord } from './request-record.ts';

/** How a value goes over the wire. */
type WireType = (typeof RECORD_FIELDS)[keyof RequestRecord]['type'];

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

type Fact = string | number | boolean | readonly string[] | Readonly<Record<string, number>> | undefined;

/** One attribute of a request's span: its name, how it goes over the wire, and what it is made of. */
interface RecordAttribute {
  readonly name: string;
  readonly type: WireType;
  /** Whether it is another one with nearly every request. */
  readonly varies?: boolean;
  readonly read: (record: Readonly<RequestRecord>, http: HttpFacts) => Fact;
}

/** `gen_ai.provider.name`: the flavour of the API, whoever implements it (the convention's note 2). */
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

/** Longer strings are cut: the record's own are at most 256, the rest is what nobody foresaw. */
const MAX_STRING_CHARS = 1024;
/** Longer lists are cut; the configuration allows no more prefix hashes than this. */
const MAX_ITEMS = 4096;
const MAX_TIMING_KEY_CHARS = 64;

/** What is the same on every span, and begins the list. */
const CONSTANT_ATTRIBUTES = `[${[
  [SEMCONV.httpRequestMethod, 'POST'],
  [SEMCONV.genAiProviderName, PROVIDER_NAME],
].map(([key, stringValue]) => JSON.stringify({ key, value: { stringValue } }))}`;

/** One attribute of one request after another. */
class AttributeEncoder {
  readonly #name: string;
  readonly #type: WireType;
  readonly #read: RecordAttribute['read'];
  readonly #before: string;
  #fact: Fact;
  /** KeyValues in JSON with a comma before each; empty for what is unknown. */
  json = '';

  constructor({ name, type, read }: RecordAttribute) {
    this.#name = name;
    this.#type = type;
    this.#read = read;
    this.#before = `,{"key":${JSON.stringify(name)},"value":`;
  }

  /** Goes on to another record, and tells whether that changed the text. */
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
 * The attributes of a request's span as OTLP's list of KeyValue, in JSON: each field of the record as `gateway.…`,
 * and the same facts under the names of the semantic conventions. What is unknown is absent. Nothing gets through
 * that makes a Collector refuse the whole batch: NaN, infinities, integers beyond 2^53, lone surrogates, strings and
 * lists without end.
 *
 * The text is made of the record itself: by way of the span's `attributes`, an object of 45 members that V8 keeps as
 * a hash table, it took three times as long. What is mostly the same from request to request is one text, made anew
 * when any of it changes.
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

/** The value as OTLP's AnyValue, made harmless; null if it is none of its type. */
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

/** A text that JSON takes as it is: nearly all of ours, and looked through faster than JSON.stringify does it. */
const PLAIN = new RegExp(`^[ !#-[\\]-~]{0,${MAX_STRING_CHARS}}$`);

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(cut(text, MAX_STRING_CHARS));
}

/** At most so many UTF-16 units, and no half of a surrogate pair at the cut or anywhere else. */
function cut(text: string, maxChars: number): string {
  return (text.length > maxChars ? text.slice(0, maxChars) : text).toWellFormed();
}
