import { MAX_VARINT_BYTES, type ProtobufWriter } from '#otel/encoding';
import { isJsonObject, type JsonObject, readJsonInt } from '#otel/otlp-json';
import { ANY_VALUE, KEY_VALUE, SPAN } from '../protobuf/otlp-tags.ts';

/** Lists in lists are read to this depth. The gateway writes none. */
const MAX_DEPTH = 8;

/**
 * Writes a KeyValue of OTLP JSON as the protobuf field `attributes` of a span. False for a value that the gateway never
 * sends: its record is another one than the gateway's, and the writer must not be used for it.
 */
export function writeJsonAttribute(writer: ProtobufWriter, key: string, value: unknown): boolean {
  const attribute = writer.begin(SPAN.attributes);
  writer.textField(KEY_VALUE.key, key);
  const anyValue = writer.begin(KEY_VALUE.value);
  const isKnown = writeJsonValue(writer, value, 0);
  writer.end(anyValue);
  writer.end(attribute);
  return isKnown;
}

/** A value with several members would be another one for each reader. */
function writeJsonValue(writer: ProtobufWriter, value: unknown, depth: number): boolean {
  if (!isJsonObject(value) || Object.keys(value).length !== 1 || depth > MAX_DEPTH) return false;
  writer.reserve(1 + MAX_VARINT_BYTES);
  if (typeof value.stringValue === 'string') {
    // UTF-8 has no half of a character: it would be written as another one.
    if (!value.stringValue.isWellFormed()) return false;
    writer.textField(ANY_VALUE.string, value.stringValue);
    return true;
  }
  if (typeof value.boolValue === 'boolean') {
    writer.byte(ANY_VALUE.bool);
    writer.byte(value.boolValue ? 1 : 0);
    return true;
  }
  if (typeof value.doubleValue === 'number') {
    writer.byte(ANY_VALUE.double);
    writer.double(value.doubleValue);
    return true;
  }
  const int = readJsonInt(value);
  if (int !== undefined) {
    writer.byte(ANY_VALUE.int);
    writer.varint(int);
    return true;
  }
  return isJsonObject(value.arrayValue) && writeJsonArray(writer, value.arrayValue, depth);
}

/** An empty list may have no member `values`. */
function writeJsonArray(writer: ProtobufWriter, { values = [] }: JsonObject, depth: number): boolean {
  if (!Array.isArray(values)) return false;
  const array = writer.begin(ANY_VALUE.array);
  let isKnown = true;
  for (const item of values) {
    const begun = writer.begin(ANY_VALUE.arrayItem);
    isKnown = writeJsonValue(writer, item, depth + 1) && isKnown;
    writer.end(begun);
  }
  writer.end(array);
  return isKnown;
}
