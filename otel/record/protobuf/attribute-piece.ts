import { MAX_UNIT_BYTES, MAX_VARINT_BYTES, ProtobufWriter, sizeOfVarint } from '#otel/encoding';
import type { FieldValue } from '#otel/record/registry';
import { MAX_ITEMS, MAX_STRING_CHARS, MAX_TIMING_KEY_CHARS, type RecordAttribute } from '../attributes.ts';
import type { PlacedAttribute } from '../layout/record-layout.ts';
import { MAX_TIMINGS } from '../record-bounds.ts';
import { ANY_VALUE, KEY_VALUE, SPAN } from './otlp-tags.ts';

/** Room for the tags and lengths of an attribute, and for a value that is no text. */
const FRAME_BYTES = 4 * MAX_VARINT_BYTES;
const DOUBLE_BYTES = 8;

/** An attribute, and what of it is in the writer's memory. */
export class AttributePiece {
  readonly name: string;
  readonly type: RecordAttribute['type'];
  /** The place of its value among those of the record. */
  readonly index: number;
  /** The field with the key, as it stands in every span. */
  readonly key: Uint8Array;
  /** The value in memory; undefined if it is unknown. */
  value: FieldValue;
  /** How many bytes the attribute takes; 0 if it is absent. */
  sizeBytes = 0;
  /** How many of them, the last ones, are its value; 0 if the value cannot be replaced alone. */
  valueBytes = 0;

  constructor({ name, type, index }: PlacedAttribute) {
    this.name = name;
    this.type = type;
    this.index = index;
    const writer = new ProtobufWriter(name.length * MAX_UNIT_BYTES + FRAME_BYTES);
    writer.textField(KEY_VALUE.key, name);
    this.key = writer.bytes.subarray(0, writer.at);
  }
}

/**
 * Writes a value over the one in memory if it has the same length. If not: false, and the attribute must be written
 * whole.
 */
export function replaceValue(writer: ProtobufWriter, piece: AttributePiece, value: FieldValue): boolean {
  const { valueBytes } = piece;
  if (valueBytes === 0) return false;
  const start = writer.at;
  writer.at = start + piece.sizeBytes - valueBytes;
  const isReplaced = writeSameLength(writer, piece.type, valueBytes, value);
  writer.at = start;
  return isReplaced;
}

function writeSameLength(
  writer: ProtobufWriter,
  type: RecordAttribute['type'],
  valueBytes: number,
  value: FieldValue,
): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string' && value.length === valueBytes && writer.ascii(value);
    case 'double':
      if (typeof value !== 'number' || !Number.isFinite(value)) return false;
      writer.double(value);
      return true;
    case 'int':
      if (!isInt(value) || sizeOfVarint(value) !== valueBytes) return false;
      writer.varint(value);
      return true;
    case 'bool':
      if (typeof value !== 'boolean') return false;
      writer.byte(value ? 1 : 0);
      return true;
    default:
      return false;
  }
}

/** Writes the attribute whole, or nothing if the value is unknown or does not have the type. */
export function writeAttribute(writer: ProtobufWriter, piece: AttributePiece, value: FieldValue): void {
  piece.valueBytes = 0;
  switch (piece.type) {
    case 'string':
      if (typeof value === 'string') writeString(writer, piece, cut(value, MAX_STRING_CHARS));
      return;
    case 'int':
      if (isInt(value)) writeInt(writer, piece, value);
      return;
    case 'double':
      if (typeof value === 'number' && Number.isFinite(value)) writeDouble(writer, piece, piece.key, value);
      return;
    case 'bool':
      if (typeof value === 'boolean') writeBool(writer, piece, value);
      return;
    case 'strings':
      if (Array.isArray(value)) writeStrings(writer, piece, value);
      return;
    case 'doubles':
      if (typeof value === 'object') writeDoubles(writer, piece, value);
  }
}

/** Writes what is before the value: all but the last `valueBytes` bytes of the attribute. */
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

const FRAMES = {
  string: { valueTag: ANY_VALUE.string, isSized: true },
  bool: { valueTag: ANY_VALUE.bool, isSized: false },
  int: { valueTag: ANY_VALUE.int, isSized: false },
  double: { valueTag: ANY_VALUE.double, isSized: false },
  array: { valueTag: ANY_VALUE.array, isSized: true },
} as const;

function writeString(writer: ProtobufWriter, piece: AttributePiece, text: string): void {
  const start = writer.at;
  writeFrame(writer, piece.key, FRAMES.string, text.length);
  if (writer.ascii(text)) {
    piece.valueBytes = text.length;
    return;
  }
  writer.at = start;
  writeFrame(writer, piece.key, FRAMES.string, Buffer.byteLength(text));
  writer.text(text);
}

function writeInt(writer: ProtobufWriter, piece: AttributePiece, value: number): void {
  piece.valueBytes = sizeOfVarint(value);
  writeFrame(writer, piece.key, FRAMES.int, piece.valueBytes);
  writer.varint(value);
}

function writeBool(writer: ProtobufWriter, piece: AttributePiece, value: boolean): void {
  piece.valueBytes = 1;
  writeFrame(writer, piece.key, FRAMES.bool, 1);
  writer.byte(value ? 1 : 0);
}

function writeDouble(writer: ProtobufWriter, piece: AttributePiece, key: Uint8Array, value: number): void {
  piece.valueBytes = DOUBLE_BYTES;
  writeFrame(writer, key, FRAMES.double, DOUBLE_BYTES);
  writer.double(value);
}

function writeStrings(writer: ProtobufWriter, { key }: AttributePiece, items: readonly unknown[]): void {
  const attribute = writer.begin(SPAN.attributes);
  writer.raw(key);
  const anyValue = writer.begin(KEY_VALUE.value);
  const array = writer.begin(ANY_VALUE.array);
  let count = 0;
  for (const item of items) {
    if (typeof item !== 'string') continue;
    if (count++ === MAX_ITEMS) break;
    const start = writer.begin(ANY_VALUE.arrayItem);
    writer.textField(ANY_VALUE.string, cut(item, MAX_STRING_CHARS));
    writer.end(start);
  }
  writer.end(array);
  writer.end(anyValue);
  writer.end(attribute);
}

/** One attribute for each number. */
function writeDoubles(writer: ProtobufWriter, piece: AttributePiece, numbers: object): void {
  for (const [name, number] of Object.entries(numbers).slice(0, MAX_TIMINGS)) {
    if (typeof number !== 'number' || !Number.isFinite(number)) continue;
    const attribute = writer.begin(SPAN.attributes);
    writer.textField(KEY_VALUE.key, piece.name + cut(name, MAX_TIMING_KEY_CHARS));
    const anyValue = writer.begin(KEY_VALUE.value);
    writer.reserve(1 + DOUBLE_BYTES);
    writer.byte(ANY_VALUE.double);
    writer.double(number);
    writer.end(anyValue);
    writer.end(attribute);
  }
}

/** Cuts a text to `maxChars` UTF-16 units. Half a surrogate pair at its end becomes U+FFFD when it is written. */
function cut(text: string, maxChars: number): string {
  return text.length > maxChars ? text.slice(0, maxChars) : text;
}

function isInt(value: FieldValue): value is number {
  return Number.isSafeInteger(value);
}
