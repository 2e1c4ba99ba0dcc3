import { toSpanJson } from '#otel/otlp';
import { isDoubleName } from '#otel/record';
import { RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { encodeMessage } from '#testkit/otlp/otlp-messages.ts';

/** An encoded span with these fields of OTLP's Span, and no others. */
export function encodeFields(span: object): Buffer {
  return Buffer.from(encodeMessage('ScopeSpans', { spans: [span] }));
}

/** An encoded span that has only a name. */
export function encodeName(name: string): Buffer {
  return encodeFields({ name });
}

/** An encoded span that has only an id, of 16 hex digits. */
export function encodeId(spanId: string): Buffer {
  return encodeFields({ spanId: Buffer.from(spanId, 'hex') });
}

/** The name of an encoded span. */
export function nameOf(encodedSpan: Uint8Array): string {
  return JSON.parse(toSpanJson(encodedSpan) ?? '{}').name;
}

/** The encoded span of a record, with these other fields. Only plain values are encoded. */
export function encodeRecord(record: Readonly<Partial<RequestRecord>>, fields: object = {}): Buffer {
  const attributes = Object.entries(record).map(([field, value]) => {
    const key = RECORD_FIELDS[field as keyof typeof RECORD_FIELDS].name;
    return { key, value: toAnyValue(key, value) };
  });
  return encodeFields({ ...fields, attributes });
}

function toAnyValue(key: string, value: unknown): object {
  switch (typeof value) {
    case 'string':
      return { stringValue: value };
    case 'boolean':
      return { boolValue: value };
    default:
      return isDoubleName(key) ? { doubleValue: value } : { intValue: value };
  }
}
