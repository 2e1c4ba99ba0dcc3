import type { FieldValue } from './attribute-names.ts';
import {
  type HttpFacts,
  MAX_ITEMS,
  MAX_STRING_CHARS,
  MAX_TIMING_KEY_CHARS,
  type RecordAttribute,
} from './attributes.ts';
import type { AttributeSet, PlacedAttribute } from './layout/record-layout.ts';
import { ANY_VALUE, KEY_VALUE, SPAN } from './protobuf/otlp-tags.ts';
import {
  MAX_UNIT_BYTES,
  MAX_VARINT_BYTES,
  ProtobufWriter,
  sizeOfVarint,
} from './protobuf/protobuf-writer.ts';
import { MAX_TIMINGS } from './record-bounds.ts';
import type { RequestRecord } from './request-record.ts';

/** Room for the tags and lengths of an attribute, and for a value that is no text. */
const FRAME_BYTES = 4 * MAX_VARINT_BYTES;
const DOUBLE_BYTES = 8;

/** An attribute, and what of it is in the writer's memory. */
class AttributePiece {
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
 * Writes attributes of a record: its fields as `gateway.…`, and the same facts under the names of the semantic
 * conventions. Unknown values are absent. Values that make a Collector refuse the whole batch are
 * left out or cut: NaN, infinities, integers beyond 2^53, lone surrogates, unlimited strings and lists.
 *
 * Why it is fast: the bytes of the last record stay in the writer's memory. An attribute with the same value is not
 * touched, and one whose new value has the same length gets only that. From the first attribute with another length on,
 * everything moves and is written again. So the attributes whose length never changes come first, the lists last.
 */
export class RecordAttributesWriter {
  readonly #writer: ProtobufWriter;
  readonly #valuesOf: AttributeSet['valuesOf'];
  readonly #pieces: readonly AttributePiece[];
  /** Where the attributes of the last record begin; -1 if they are not in memory any more. */
  #startedAt = -1;

  /** Call `forget` when anybody else may have changed the writer's memory from the first attribute on. */
  constructor(writer: ProtobufWriter, { attributes, valuesOf }: AttributeSet) {
    this.#writer = writer;
    this.#valuesOf = valuesOf;
    this.#pieces = toPieces(attributes);
  }

  /** What is in the writer's memory may not be the attributes of the last record any more. */
  forget(): void {
    this.#startedAt = -1;
  }

  /** Writes the attributes at the writer's place. */
  write(record: Readonly<RequestRecord>, http: HttpFacts): void {
    const writer = this.#writer;
    const values = this.#valuesOf(record, http);
    let isInPlace = this.#startedAt === writer.at;
    const startedAt = writer.at;
    for (const piece of this.#pieces) {
      const value = values[piece.index];
      if (isInPlace && (value === piece.value || replaceValue(writer, piece, value))) {
        piece.value = value;
        writer.at += piece.sizeBytes;
        continue;
      }
      const start = writer.at;
      writeAttribute(writer, piece, value);
      piece.value = value;
      const sizeBytes = writer.at - start;
      if (sizeBytes !== piece.sizeBytes) isInPlace = false;
      piece.sizeBytes = sizeBytes;
    }
    this.#startedAt = startedAt;
  }
}

function toPieces(attributes: readonly PlacedAttribute[]): readonly AttributePiece[] {
  const pieces = attributes.map((attribute) => ({
    piece: new AttributePiece(attribute),
    rank: toRank(attribute),
  }));
  return pieces.toSorted((one, other) => one.rank - other.rank).map(({ piece }) => piece);
}

/** Attributes with a low rank seldom change their length. */
function toRank({ type, varies, isRequired }: RecordAttribute): number {
  if (type === 'strings' || type === 'doubles') return 4;
  if (isRequired) return 0;
  if (varies) return 3;
  return type === 'string' ? 2 : 1;
}

/** Writes a value over the one in memory if it has the same length. If not: false, and the attribute must be written whole. */
function replaceValue(writer: ProtobufWriter, piece: AttributePiece, value: FieldValue): boolean {
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
function writeAttribute(writer: ProtobufWriter, piece: AttributePiece, value: FieldValue): void {
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
