import type { Attributes, HrTime } from '@opentelemetry/api';
import { isJsonObject, listOf, parseJson, readJsonInt } from '#otel/otlp-json';
import { isDoubleName, type RecordSpan, toRecord } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';

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
    .flatMap((span) => toSpanRecord(span) ?? []);
}

function toSpanRecord(span: unknown): RequestRecord | null {
  return toRecord({
    attributes: readAttributes(span),
    events: listOf(span, 'events').flatMap((event) => readEvent(event) ?? []),
    startTime: readTime(span, 'startTimeUnixNano'),
  });
}

function readEvent(event: unknown): RecordSpan['events'][number] | null {
  if (!isJsonObject(event) || typeof event.name !== 'string') return null;
  return { name: event.name, time: readTime(event, 'timeUnixNano'), attributes: readAttributes(event) };
}

const NANOS = 1_000_000_000n;

/** 0 if it is absent, as protobuf has it. */
function readTime(owner: unknown, member: string): HrTime {
  const nanos = isJsonObject(owner) ? owner[member] : undefined;
  if (typeof nanos !== 'string' || !/^\d{1,20}$/.test(nanos)) return [0, 0];
  return [Number(BigInt(nanos) / NANOS), Number(BigInt(nanos) % NANOS)];
}

/** The attributes of a span or an event in OTLP JSON. */
function readAttributes(owner: unknown): Attributes {
  const attributes: Attributes = {};
  for (const attribute of listOf(owner, 'attributes')) {
    if (!isJsonObject(attribute) || typeof attribute.key !== 'string') continue;
    const value = readValue(isDoubleName(attribute.key), attribute.value);
    if (value !== undefined) attributes[attribute.key] = value;
  }
  return attributes;
}

/** Reads an OTLP AnyValue in JSON; undefined for what the gateway never sends. */
function readValue(isDouble: boolean, value: unknown): string | boolean | number | string[] | undefined {
  if (!isJsonObject(value)) return undefined;
  const { stringValue, boolValue, doubleValue, arrayValue } = value;
  if (typeof stringValue === 'string') return stringValue;
  if (typeof boolValue === 'boolean') return boolValue;
  if (isJsonObject(arrayValue)) return listOf(arrayValue, 'values').flatMap(readString);
  if (!isDouble) return readJsonInt(value);
  return typeof doubleValue === 'number' ? doubleValue : undefined;
}

function readString(item: unknown): string | [] {
  return isJsonObject(item) && typeof item.stringValue === 'string' ? item.stringValue : [];
}

function toText(bytes: Uint8Array | string): string {
  return typeof bytes === 'string'
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
