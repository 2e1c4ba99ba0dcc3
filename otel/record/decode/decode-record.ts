import { isJsonObject, listOf, parseJson, readJsonInt } from '#otel/encoding';
import { FAILED_ATTEMPT, RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { toSpanJson } from '../protobuf/span-to-json.ts';

/** An attempt of a request that failed. */
export interface ShownAttempt {
  /** The name of the replica. */
  readonly replica: string;
  /** Why it failed: a code such as `not_connected`. */
  readonly failure: string;
  /** What the replica answered; null if it did not. */
  readonly status: number | null;
  readonly duration_ms: number;
}

/** A record with what its span tells beside its attributes. */
export interface ShownRecord extends RequestRecord {
  /** Absent if no attempt failed. */
  readonly failed_attempts?: readonly ShownAttempt[];
}

type WireType = (typeof RECORD_FIELDS)[keyof RequestRecord]['type'];

const WIRE_FIELDS = Object.entries(RECORD_FIELDS).map(([field, { name, type }]) => ({ field, name, type }));

/** The fields that are one attribute each, by its name. */
const FIELDS: ReadonlyMap<string, (typeof WIRE_FIELDS)[number]> = new Map(
  WIRE_FIELDS.filter(({ type }) => type !== 'doubles').map((field) => [field.name, field]),
);

/** The fields with one attribute for each member. Their names are prefixes. */
const MAPS = WIRE_FIELDS.filter(({ type }) => type === 'doubles');

/**
 * Decodes the record of an encoded span (one span in OTLP protobuf, then the spans of its attempts), with the failed
 * attempts among the span's events. Values that were cut stay cut. Returns null for anything else.
 */
export function decodeRecord(encodedSpan: Uint8Array): ShownRecord | null {
  const json = toSpanJson(encodedSpan);
  const spans = json === null ? null : parseJson(`[${json}]`);
  const span: unknown = Array.isArray(spans) ? spans[0] : null;
  const record = toRecord(span);
  if (record === null) return null;
  const failedAttempts = listOf(span, 'events').flatMap((event) => readFailedAttempt(event) ?? []);
  return failedAttempts.length === 0 ? record : { ...record, failed_attempts: failedAttempts };
}

/**
 * Decodes the records in one line of a file, in their order. The line is a TracesData message in OTLP JSON, as
 * `export.to: file` and a Collector's file exporter write it. Spans other than requests are skipped. Returns null for
 * anything else, such as an incomplete line or another signal.
 */
export function decodeRecords(fileLine: Uint8Array | string): readonly RequestRecord[] | null {
  const message = parseJson(toText(fileLine));
  if (!isJsonObject(message) || !Array.isArray(message.resourceSpans)) return null;
  return message.resourceSpans
    .flatMap((resourceSpans) => listOf(resourceSpans, 'scopeSpans'))
    .flatMap((scopeSpans) => listOf(scopeSpans, 'spans'))
    .flatMap((span) => toRecord(span) ?? []);
}

function toRecord(span: unknown): RequestRecord | null {
  const fields: Record<string, unknown> = {};
  for (const attribute of listOf(span, 'attributes')) {
    if (isJsonObject(attribute) && typeof attribute.key === 'string') {
      readAttribute(fields, attribute.key, attribute.value);
    }
  }
  return isRequestRecord(fields) ? fields : null;
}

/** The fields that every record has. They distinguish a request's span from other spans. */
const REQUIRED = Object.entries(RECORD_FIELDS)
  .filter(([, { isRequired }]) => isRequired)
  .map(([field]) => field);

/** Checks presence only: each value was read with the type in the registry. */
function isRequestRecord(fields: Record<string, unknown>): fields is Record<string, unknown> & RequestRecord {
  return REQUIRED.every((field) => fields[field] !== undefined) && fields.truncated !== false;
}

function readAttribute(fields: Record<string, unknown>, name: string, value: unknown): void {
  const known = FIELDS.get(name);
  if (known !== undefined) {
    const read = readValue(known.type, value);
    if (read !== undefined) fields[known.field] = read;
    return;
  }
  const map = MAPS.find((each) => name.startsWith(each.name));
  const number = readValue('double', value);
  if (map === undefined || number === undefined) return;
  // A computed key defines a member even if an engine's key is `__proto__`.
  fields[map.field] = { ...toObject(fields[map.field]), [name.slice(map.name.length)]: number };
}

function readFailedAttempt(event: unknown): ShownAttempt | null {
  if (!isJsonObject(event) || event.name !== FAILED_ATTEMPT.event) return null;
  const attributes = listOf(event, 'attributes').filter(isJsonObject);
  const read = (type: WireType, name: string) =>
    readValue(type, attributes.find(({ key }) => key === name)?.value);
  const replica = read('string', FAILED_ATTEMPT.replica);
  const failure = read('string', FAILED_ATTEMPT.errorType);
  const status = read('int', FAILED_ATTEMPT.httpResponseStatusCode);
  const durationMs = read('double', FAILED_ATTEMPT.durationMs);
  if (typeof replica !== 'string' || typeof failure !== 'string' || typeof durationMs !== 'number')
    return null;
  return { replica, failure, status: typeof status === 'number' ? status : null, duration_ms: durationMs };
}

/** Reads an OTLP AnyValue in JSON if it has this type. */
function readValue(type: WireType, value: unknown): unknown {
  if (!isJsonObject(value)) return undefined;
  switch (type) {
    case 'string':
      return typeof value.stringValue === 'string' ? value.stringValue : undefined;
    case 'bool':
      return typeof value.boolValue === 'boolean' ? value.boolValue : undefined;
    case 'int':
      return readJsonInt(value);
    case 'double':
      return typeof value.doubleValue === 'number' ? value.doubleValue : undefined;
    case 'strings':
      return isJsonObject(value.arrayValue) ? readStrings(value.arrayValue) : undefined;
    case 'doubles':
      return undefined;
  }
}

function readStrings(arrayValue: unknown): readonly unknown[] {
  return listOf(arrayValue, 'values').flatMap((item) => readValue('string', item) ?? []);
}

function toObject(value: unknown): object {
  return isJsonObject(value) ? value : {};
}

function toText(bytes: Uint8Array | string): string {
  return typeof bytes === 'string'
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
