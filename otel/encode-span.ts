import type { Attributes, AttributeValue, HrTime, Link } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { isDoubleName } from './attributes.ts';

/** Bits 8 and 9 of OTLP's span flags: it is known whether the other side is remote; it is. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

const SEPARATOR = Buffer.from(',');

type OtlpValue =
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: readonly OtlpValue[] } };

/** OTLP's KeyValue, as JSON. */
export interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

/**
 * One span as OTLP JSON (opentelemetry-proto, trace.proto; hex ids, nanoseconds and int64 as strings), in UTF-8:
 * what JsonTraceSerializer makes of it, but that doubles stay doubles when they happen to be integral.
 */
export function encodeSpan(span: ReadableSpan): Uint8Array {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return Buffer.from(
    JSON.stringify({
      traceId,
      spanId,
      parentSpanId: span.parentSpanContext?.spanId,
      name: span.name,
      // The API counts kinds from 0, the protocol from 1: its 0 is "unspecified".
      kind: span.kind + 1,
      startTimeUnixNano: toNanos(span.startTime),
      endTimeUnixNano: toNanos(span.endTime),
      attributes: toOtlpAttributes(span.attributes),
      droppedAttributesCount: span.droppedAttributesCount,
      events: span.events.map((event) => ({
        attributes: toOtlpAttributes(event.attributes ?? {}),
        name: event.name,
        timeUnixNano: toNanos(event.time),
        droppedAttributesCount: event.droppedAttributesCount ?? 0,
      })),
      droppedEventsCount: span.droppedEventsCount,
      status: { code: span.status.code, message: span.status.message },
      links: span.links.map(toOtlpLink),
      droppedLinksCount: span.droppedLinksCount,
      flags: toFlags(traceFlags, span.parentSpanContext?.isRemote),
    }),
  );
}

/**
 * A record as a batch has it: its span, and after commas the spans of its attempts. One piece, so that they are
 * queued, sent and refused together.
 */
export function encodeRecord(span: ReadableSpan, attempts: readonly ReadableSpan[]): Uint8Array {
  if (attempts.length === 0) return encodeSpan(span);
  const pieces = [span, ...attempts].flatMap((each) => [SEPARATOR, encodeSpan(each)]);
  return Buffer.concat(pieces.slice(1));
}

/** Attributes as OTLP's list of KeyValue; empty and nested values, which we never write, are left out. */
export function toOtlpAttributes(attributes: Attributes): OtlpAttribute[] {
  const encoded: OtlpAttribute[] = [];
  for (const [key, value] of Object.entries(attributes)) {
    const otlpValue = toOtlpValue(key, value);
    if (otlpValue !== undefined) encoded.push({ key, value: otlpValue });
  }
  return encoded;
}

function toOtlpLink({ context, attributes, droppedAttributesCount }: Link): object {
  return {
    attributes: toOtlpAttributes(attributes ?? {}),
    spanId: context.spanId,
    traceId: context.traceId,
    droppedAttributesCount: droppedAttributesCount ?? 0,
    flags: toFlags(context.traceFlags, context.isRemote),
  };
}

function toOtlpValue(key: string, value: AttributeValue | undefined): OtlpValue | undefined {
  switch (typeof value) {
    case 'string':
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    case 'number':
      return isDoubleName(key) || !Number.isInteger(value)
        ? { doubleValue: value }
        : { intValue: String(value) };
    default:
      return Array.isArray(value) ? { arrayValue: { values: toOtlpValues(key, value) } } : undefined;
  }
}

function toOtlpValues(key: string, items: readonly AttributeValue[]): OtlpValue[] {
  return items.flatMap((item) => toOtlpValue(key, item) ?? []);
}

function toFlags(traceFlags: number, isRemote: boolean | undefined): number {
  return (traceFlags & 0xff) | HAS_IS_REMOTE | (isRemote === true ? IS_REMOTE : 0);
}

/** Seconds and nanoseconds as one decimal number: too large for a double. */
function toNanos([seconds, nanos]: HrTime): string {
  return `${Math.trunc(seconds)}${String(Math.trunc(nanos)).padStart(9, '0')}`;
}
