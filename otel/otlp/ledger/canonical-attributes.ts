import { hash } from 'node:crypto';
import { MAX_VARINT_BYTES, MalformedProtobufError, ProtobufReader, ProtobufWriter } from '#otel/encoding';
import { isJsonObject, type JsonObject, listOf, readJsonInt } from '#otel/otlp-json';
import { ANY_VALUE, KEY_VALUE, SCOPE_SPANS, SPAN } from '../protobuf/otlp-tags.ts';

/** The attributes that are covered are those whose names begin so: the record. Others may be added on the way. */
const COVERED_TEXT = 'gateway.';
const COVERED = Buffer.from(COVERED_TEXT);
/** How much of a SHA-256 a ledger keeps for each record, from its start. */
export const DIGEST_BYTES = 16;
const SOME_BYTES = 16 * 1024;
/** A call into V8 to copy bytes costs as much as this many copied one by one. */
const SHORT_BYTES = 64;

/**
 * Digests the covered attributes of a span in their canonical form, which docs/internals/ledger-form.md freezes: the fields
 * `attributes` of the Span message in protobuf, as in a Span that has no others, sorted by key and then by value.
 *
 * It reads them where they are encoded. Attributes come in nearly the same order in every record, so the order of the
 * last one is tried first: sorting is then one comparison for each.
 */
export class AttributesDigester {
  #memory = Buffer.allocUnsafeSlow(SOME_BYTES);
  readonly #writer = new ProtobufWriter(SOME_BYTES);
  /** Where each covered attribute begins and ends, and where its key does. */
  #starts: number[] = [];
  #ends: number[] = [];
  #keyStarts: number[] = [];
  #keyEnds: number[] = [];
  /** The places of the attributes in the order of their keys, as in the last span. */
  #order: number[] = [];

  /** The SHA-256 of an encoded span: a field of ScopeSpans, perhaps with those of attempts after it. Null: no span. */
  digestSpan(encodedSpan: Uint8Array): Buffer | null {
    try {
      const reader = new ProtobufReader(encodedSpan);
      if (!reader.next(reader.end) || reader.tag !== SCOPE_SPANS.span) return null;
      const end = reader.message();
      return this.#digest(encodedSpan, reader, end);
    } catch (error) {
      if (error instanceof MalformedProtobufError) return null;
      throw error;
    }
  }

  /** The SHA-256 of attributes that are encoded as fields of a span. `except`: the key of one to leave out. */
  digestAttributes(attributes: Uint8Array, except?: string): Buffer {
    const reader = new ProtobufReader(attributes);
    return this.#digest(attributes, reader, reader.end, except);
  }

  /** The SHA-256 of a span in OTLP JSON. Null if it has a value that the gateway never sends. `except`: as above. */
  digestJsonSpan(span: unknown, except?: string): Buffer | null {
    const writer = this.#writer;
    writer.at = 0;
    for (const attribute of listOf(span, 'attributes')) {
      if (!isJsonObject(attribute) || typeof attribute.key !== 'string') continue;
      if (!attribute.key.startsWith(COVERED_TEXT)) continue;
      if (!writeJsonAttribute(writer, attribute.key, attribute.value)) return null;
    }
    return this.digestAttributes(writer.bytes.subarray(0, writer.at), except);
  }

  #digest(bytes: Uint8Array, reader: ProtobufReader, end: number, except?: string): Buffer {
    const count = this.#find(bytes, reader, end, except === undefined ? null : Buffer.from(except));
    this.#sort(bytes, count);
    let at = 0;
    for (const place of this.#order) {
      const start = this.#starts[place] ?? 0;
      at = this.#copy(bytes, start, this.#ends[place] ?? start, at);
    }
    return hash('sha256', this.#memory.subarray(0, at), 'buffer');
  }

  #find(bytes: Uint8Array, reader: ProtobufReader, end: number, except: Buffer | null): number {
    let count = 0;
    let start = reader.at;
    while (reader.next(end)) {
      if (reader.tag !== SPAN.attributes) {
        reader.skip();
        start = reader.at;
        continue;
      }
      const attributeEnd = reader.message();
      if (reader.next(attributeEnd) && reader.tag === KEY_VALUE.key) {
        const keyEnd = reader.message();
        const keyStart = reader.at;
        if (isCovered(bytes, keyStart, keyEnd) && !isKey(bytes, keyStart, keyEnd, except)) {
          this.#starts[count] = start;
          this.#ends[count] = attributeEnd;
          this.#keyStarts[count] = keyStart;
          this.#keyEnds[count] = keyEnd;
          count += 1;
        }
      }
      reader.at = attributeEnd;
      start = attributeEnd;
    }
    return count;
  }

  /** An insertion sort, which needs one comparison for each attribute if the order is already right. */
  #sort(bytes: Uint8Array, count: number): void {
    const order = this.#order;
    if (order.length !== count) this.#order = Array.from({ length: count }, (_, place) => place);
    for (let index = 1; index < count; index++) {
      const place = this.#order[index] ?? 0;
      let at = index;
      for (; at > 0; at--) {
        const before = this.#order[at - 1] ?? 0;
        if (this.#compare(bytes, before, place) <= 0) break;
        this.#order[at] = before;
      }
      this.#order[at] = place;
    }
  }

  #compare(bytes: Uint8Array, a: number, b: number): number {
    const aEnd = this.#keyEnds[a] ?? 0;
    const bEnd = this.#keyEnds[b] ?? 0;
    const byKey = compareBytes(bytes, (this.#keyStarts[a] ?? 0) + COVERED.length, aEnd, {
      start: (this.#keyStarts[b] ?? 0) + COVERED.length,
      end: bEnd,
    });
    if (byKey !== 0) return byKey;
    return compareBytes(bytes, aEnd, this.#ends[a] ?? 0, { start: bEnd, end: this.#ends[b] ?? 0 });
  }

  /** Copies bytes into the memory at a place, and returns where they end there. */
  #copy(bytes: Uint8Array, start: number, end: number, at: number): number {
    const length = end - start;
    if (at + length > this.#memory.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#memory.length, at + length));
      this.#memory.copy(grown, 0, 0, at);
      this.#memory = grown;
    }
    const memory = this.#memory;
    if (length > SHORT_BYTES) memory.set(bytes.subarray(start, end), at);
    else for (let index = 0; index < length; index++) memory[at + index] = bytes[start + index] ?? 0;
    return at + length;
  }
}

function isCovered(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < COVERED.length) return false;
  for (let index = 0; index < COVERED.length; index++) {
    if (bytes[start + index] !== COVERED[index]) return false;
  }
  return true;
}

function isKey(bytes: Uint8Array, start: number, end: number, key: Buffer | null): boolean {
  return key?.equals(bytes.subarray(start, end)) === true;
}

function compareBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  other: { readonly start: number; readonly end: number },
): number {
  const length = Math.min(end - start, other.end - other.start);
  for (let index = 0; index < length; index++) {
    const difference = (bytes[start + index] ?? 0) - (bytes[other.start + index] ?? 0);
    if (difference !== 0) return difference;
  }
  return end - start - (other.end - other.start);
}

/** Lists in lists are read to this depth. The gateway writes none. */
const MAX_DEPTH = 8;

/**
 * Writes a KeyValue of OTLP JSON as the protobuf field `attributes` of a span. False for a value that the gateway never
 * sends: its record is another one than the gateway's, and the writer must not be used for it.
 */
function writeJsonAttribute(writer: ProtobufWriter, key: string, value: unknown): boolean {
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
