import type { Attributes, AttributeValue, HrTime, Link } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { isDoubleName } from './attributes.ts';
import { encodedJsonOf } from './record-attributes.ts';

/** Bits 8 and 9 of OTLP's span flags: whether `IS_REMOTE` is known, and whether the other side is remote. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

/** A UTF-16 unit is at most three bytes of UTF-8. */
const MAX_UNIT_BYTES = 3;

type TimedEvent = ReadableSpan['events'][number];

/**
 * Encodes one span as OTLP JSON (opentelemetry-proto, trace.proto; hex ids, nanoseconds and int64 as strings). The
 * result equals JsonTraceSerializer's, except that integral doubles stay doubles.
 *
 * The text is written directly. Building an object for JSON.stringify took twice as long (9.4 µs instead of 4.7 µs).
 */
export function encodeSpan(span: ReadableSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const parent = span.parentSpanContext;
  const { status } = span;
  return (
    `{"traceId":"${traceId}","spanId":"${spanId}",${parent === undefined ? '' : `"parentSpanId":"${parent.spanId}",`}` +
    // The API counts kinds from 0, the protocol from 1: its 0 is "unspecified".
    `"name":${JSON.stringify(span.name)},"kind":${span.kind + 1},` +
    `"startTimeUnixNano":"${toNanos(span.startTime)}","endTimeUnixNano":"${toNanos(span.endTime)}",` +
    `"attributes":${encodedJsonOf(span.attributes) ?? encodeAttributes(span.attributes)},` +
    `"droppedAttributesCount":${span.droppedAttributesCount},` +
    `"events":[${span.events.map(encodeEvent).join()}],"droppedEventsCount":${span.droppedEventsCount},` +
    `"status":{"code":${status.code}${status.message === undefined ? '' : `,"message":${JSON.stringify(status.message)}`}},` +
    `"links":[${span.links.map(encodeLink).join()}],"droppedLinksCount":${span.droppedLinksCount},` +
    `"flags":${toFlags(traceFlags, parent?.isRemote)}}`
  );
}

/** Most records fit into this size. */
const SCRATCH_BYTES = 64 * 1024;

/** Encodes records into memory that it reuses. */
export class RecordEncoder {
  readonly #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

  /**
   * Encodes a record for a batch, in UTF-8: its span and then the spans of its attempts, separated by commas. They are
   * one piece, so that they are queued, sent and rejected together. The bytes are valid until the next call.
   */
  encode(span: ReadableSpan, attempts: readonly ReadableSpan[]): Uint8Array {
    let json = encodeSpan(span);
    for (const attempt of attempts) json += `,${encodeSpan(attempt)}`;
    if (json.length * MAX_UNIT_BYTES > this.#scratch.length) return Buffer.from(json);
    return this.#scratch.subarray(0, this.#scratch.write(json));
  }
}

/**
 * Encodes attributes as OTLP's list of KeyValue, in JSON. Omits empty and nested values, which the gateway never
 * sets.
 */
export function encodeAttributes(attributes: Attributes): string {
  let json = '';
  for (const name in attributes) {
    const value = encodeValue(isDoubleName(name), attributes[name]);
    if (value !== null) json += `${json === '' ? '' : ','}{"key":${JSON.stringify(name)},"value":${value}}`;
  }
  return `[${json}]`;
}

/** Encodes a value as OTLP's AnyValue, in JSON; null if it cannot be one. */
function encodeValue(isDouble: boolean, value: AttributeValue | undefined): string | null {
  switch (typeof value) {
    case 'string':
      return `{"stringValue":${JSON.stringify(value)}}`;
    case 'boolean':
      return `{"boolValue":${value}}`;
    case 'number':
      return encodeNumber(isDouble, value);
    default:
      return Array.isArray(value) ? `{"arrayValue":{"values":[${encodeItems(isDouble, value)}]}}` : null;
  }
}

/** JSON has no NaN and no infinities. They become null, as with JSON.stringify. */
function encodeNumber(isDouble: boolean, value: number): string {
  if (!isDouble && Number.isInteger(value)) return `{"intValue":"${value}"}`;
  return `{"doubleValue":${Number.isFinite(value) ? value : 'null'}}`;
}

function encodeItems(isDouble: boolean, items: readonly AttributeValue[]): string {
  let json = '';
  for (const item of items) {
    const value = encodeValue(isDouble, item);
    if (value !== null) json += json === '' ? value : `,${value}`;
  }
  return json;
}

function encodeEvent({ attributes, name, time, droppedAttributesCount }: TimedEvent): string {
  return (
    `{"attributes":${encodeAttributes(attributes ?? {})},"name":${JSON.stringify(name)},` +
    `"timeUnixNano":"${toNanos(time)}","droppedAttributesCount":${droppedAttributesCount ?? 0}}`
  );
}

function encodeLink({ context, attributes, droppedAttributesCount }: Link): string {
  return (
    `{"attributes":${encodeAttributes(attributes ?? {})},"spanId":"${context.spanId}","traceId":"${context.traceId}",` +
    `"droppedAttributesCount":${droppedAttributesCount ?? 0},"flags":${toFlags(context.traceFlags, context.isRemote)}}`
  );
}

function toFlags(traceFlags: number, isRemote: boolean | undefined): number {
  return (traceFlags & 0xff) | HAS_IS_REMOTE | (isRemote === true ? IS_REMOTE : 0);
}

/** Joins seconds and nanoseconds as text, because the number is too large for a double. */
function toNanos([seconds, nanos]: HrTime): string {
  return `${Math.trunc(seconds)}${String(Math.trunc(nanos)).padStart(9, '0')}`;
}
