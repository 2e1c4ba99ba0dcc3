import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { MAX_VARINT_BYTES, type ProtobufWriter } from '#otel/encoding';
import { isDoubleName } from '#otel/record';
import { ANY_VALUE, KEY_VALUE } from './otlp-tags.ts';

/** Writes attributes as a list of KeyValue. Omits empty and nested values, which the gateway never sets. */
export function writeAttributes(writer: ProtobufWriter, tag: number, attributes: Attributes): void {
  for (const name in attributes) {
    const value = attributes[name];
    if (!isWritten(value)) continue;
    const attribute = writer.begin(tag);
    writer.textField(KEY_VALUE.key, name);
    const anyValue = writer.begin(KEY_VALUE.value);
    writeAnyValue(writer, isDoubleName(name), value);
    writer.end(anyValue);
    writer.end(attribute);
  }
}

/** What is written of attributes. */
export type WrittenValue = string | boolean | number | AttributeValue[];

/** Whether a value is written: a text, a number, a boolean or a list. */
export function isWritten(value: AttributeValue | undefined): value is WrittenValue {
  return (
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean' ||
    Array.isArray(value)
  );
}

/** Writes an AnyValue without its length. */
export function writeAnyValue(writer: ProtobufWriter, isDouble: boolean, value: WrittenValue): void {
  writer.reserve(1 + MAX_VARINT_BYTES);
  switch (typeof value) {
    case 'string':
      writer.textField(ANY_VALUE.string, value);
      return;
    case 'boolean':
      writer.byte(ANY_VALUE.bool);
      writer.byte(value ? 1 : 0);
      return;
    case 'number':
      if (isDouble || !Number.isSafeInteger(value)) {
        writer.byte(ANY_VALUE.double);
        writer.double(value);
      } else {
        writer.byte(ANY_VALUE.int);
        writer.varint(value);
      }
      return;
    default: {
      const array = writer.begin(ANY_VALUE.array);
      for (const item of value) {
        if (!isWritten(item)) continue;
        const begun = writer.begin(ANY_VALUE.arrayItem);
        writeAnyValue(writer, isDouble, item);
        writer.end(begun);
      }
      writer.end(array);
    }
  }
}
