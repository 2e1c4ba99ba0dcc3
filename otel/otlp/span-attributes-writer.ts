import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { MAX_UNIT_BYTES, MAX_VARINT_BYTES, ProtobufWriter, sizeOfVarint } from '#otel/encoding';
import { isDoubleName } from '#otel/record';
import { isWritten, type WrittenValue, writeAnyValue } from './protobuf/any-value.ts';
import { ANY_VALUE, KEY_VALUE, SPAN } from './protobuf/otlp-tags.ts';

/** Room for the tags and lengths of an attribute, and for a value that is no text. */
const FRAME_BYTES = 4 * MAX_VARINT_BYTES;
const DOUBLE_BYTES = 8;
/** So many names are remembered, with their encoded keys. The registry has about a hundred; engines have their own. */
const MAX_NAMES = 256;

/** An attribute, and what of it is in the writer's memory. */
interface WrittenAttribute {
  readonly name: string;
  readonly isDouble: boolean;
  /** The field with the key, as it stands in every span. */
  readonly key: Uint8Array;
  /** The value in memory. */
  value: AttributeValue | undefined;
  /** How many bytes the attribute takes. */
  sizeBytes: number;
  /** How many of them, the last ones, are its value; 0 if the value cannot be replaced alone. */
  valueBytes: number;
}

/**
 * Writes the attributes of spans that are much alike, each over those of the span before.
 *
 * Why it is fast: the bytes of the last span stay in the writer's memory. As long as the names come in the same order, an
 * attribute with the same value is not touched, and one whose new value has the same length gets only that. From the
 * first attribute with another length on, everything is written again.
 */
export class SpanAttributesWriter {
  readonly #writer: ProtobufWriter;
  readonly #names = new Map<string, WrittenAttribute>();
  /** Those in memory, in their order. */
  #written: WrittenAttribute[] = [];
  /** Where the attributes of the last span begin; -1 if they are not in memory any more. */
  #startedAt = -1;

  /** Call `forget` when anybody else may have changed the writer's memory from the first attribute on. */
  constructor(writer: ProtobufWriter) {
    this.#writer = writer;
  }

  /** What is in the writer's memory may not be the attributes of the last span any more. */
  forget(): void {
    this.#startedAt = -1;
  }

  /** Writes the attributes at the writer's place. */
  write(attributes: Attributes): void {
    const writer = this.#writer;
    const written = this.#written;
    let isInPlace = this.#startedAt === writer.at;
    this.#startedAt = writer.at;
    let count = 0;
    for (const name in attributes) {
      const value = attributes[name];
      if (!isWritten(value)) continue;
      let attribute = written[count];
      if (attribute === undefined || attribute.name !== name) {
        isInPlace = false;
        attribute = this.#named(name);
        written[count] = attribute;
      }
      count++;
      if (isInPlace && (value === attribute.value || replaceValue(writer, attribute, value))) {
        attribute.value = value;
        writer.at += attribute.sizeBytes;
        continue;
      }
      const start = writer.at;
      attribute.value = value;
      attribute.valueBytes = writeAttribute(writer, attribute, value);
      const sizeBytes = writer.at - start;
      if (sizeBytes !== attribute.sizeBytes) isInPlace = false;
      attribute.sizeBytes = sizeBytes;
    }
    written.length = count;
  }

  #named(name: string): WrittenAttribute {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const writer = new ProtobufWriter(name.length * MAX_UNIT_BYTES + FRAME_BYTES);
    writer.textField(KEY_VALUE.key, name);
    const key = writer.bytes.subarray(0, writer.at);
    const isDouble = isDoubleName(name);
    const attribute = { name, isDouble, key, value: undefined, sizeBytes: 0, valueBytes: 0 };
    if (this.#names.size < MAX_NAMES) this.#names.set(name, attribute);
    return attribute;
  }
}

/** Writes a value over the one in memory if it has the same form and length. If not: false. */
function replaceValue(
  writer: ProtobufWriter,
  { isDouble, sizeBytes, valueBytes, value: before }: WrittenAttribute,
  value: AttributeValue,
): boolean {
  if (valueBytes === 0 || typeof value !== typeof before) return false;
  const start = writer.at;
  writer.at += sizeBytes - valueBytes;
  const isReplaced = writeSameLength(writer, isDouble, valueBytes, value);
  writer.at = start;
  return isReplaced;
}

function writeSameLength(
  writer: ProtobufWriter,
  isDouble: boolean,
  valueBytes: number,
  value: AttributeValue,
): boolean {
  switch (typeof value) {
    case 'string':
      return value.length === valueBytes && writer.ascii(value);
    case 'number':
      if (isDouble) writer.double(value);
      else if (!Number.isSafeInteger(value) || sizeOfVarint(value) !== valueBytes) return false;
      else writer.varint(value);
      return true;
    case 'boolean':
      writer.byte(value ? 1 : 0);
      return true;
    default:
      return false;
  }
}

/** Writes an attribute whole. Returns how many of its bytes, the last ones, can be replaced alone. */
function writeAttribute(
  writer: ProtobufWriter,
  { key, isDouble }: WrittenAttribute,
  value: WrittenValue,
): number {
  if (typeof value === 'string') {
    const start = writer.at;
    writeFrame(writer, key, { valueTag: ANY_VALUE.string, isSized: true }, value.length);
    if (writer.ascii(value)) return value.length;
    writer.at = start;
  } else if (typeof value === 'boolean') {
    writeFrame(writer, key, { valueTag: ANY_VALUE.bool, isSized: false }, 1);
    writer.byte(value ? 1 : 0);
    return 1;
  } else if (typeof value === 'number' && isDouble) {
    writeFrame(writer, key, { valueTag: ANY_VALUE.double, isSized: false }, DOUBLE_BYTES);
    writer.double(value);
    return DOUBLE_BYTES;
  } else if (typeof value === 'number' && Number.isSafeInteger(value)) {
    const valueBytes = sizeOfVarint(value);
    writeFrame(writer, key, { valueTag: ANY_VALUE.int, isSized: false }, valueBytes);
    writer.varint(value);
    return valueBytes;
  }
  const attribute = writer.begin(SPAN.attributes);
  writer.raw(key);
  const anyValue = writer.begin(KEY_VALUE.value);
  writeAnyValue(writer, isDouble, value);
  writer.end(anyValue);
  writer.end(attribute);
  return 0;
}

/** Writes what is before the value: all but the last `valueBytes` bytes of the attribute. There is room for them. */
function writeFrame(
  writer: ProtobufWriter,
  key: Uint8Array,
  frame: { readonly valueTag: number; readonly isSized: boolean },
  valueBytes: number,
): void {
  const anyValueBytes = 1 + (frame.isSized ? sizeOfVarint(valueBytes) : 0) + valueBytes;
  writer.reserve(key.length + anyValueBytes + FRAME_BYTES);
  writer.byte(SPAN.attributes);
  writer.varint(key.length + 1 + sizeOfVarint(anyValueBytes) + anyValueBytes);
  writer.bytes.set(key, writer.at);
  writer.at += key.length;
  writer.byte(KEY_VALUE.value);
  writer.varint(anyValueBytes);
  writer.byte(frame.valueTag);
  if (frame.isSized) writer.varint(valueBytes);
}
