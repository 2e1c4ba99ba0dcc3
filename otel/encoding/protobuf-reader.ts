import { WIRE_TYPE } from './protobuf-writer.ts';

/** The longest varint; only the lowest bit of its last byte counts. */
const MAX_SHIFT = 63;

/** A varint of so many bytes is below 2^53. */
const MAX_EXACT_BYTES = 7;

/** The bytes are not the message that they should be. */
export class MalformedProtobufError extends Error {
  override readonly name = 'MalformedProtobufError';
}

/** Texts by the number of their bytes, each with what is wanted in its place. */
export type KnownTexts = ReadonlyMap<
  number,
  readonly { readonly bytes: Uint8Array; readonly text: string }[]
>;

/**
 * Reads protobuf's wire format, field by field: `while (reader.next(end)) switch (reader.tag) …`. Every step is checked
 * against the end of the message, and throws a MalformedProtobufError beyond it. Fields of other tags are skipped.
 */
export class ProtobufReader {
  readonly #bytes: Buffer;
  #at = 0;
  /** The tag of the current field: its number and its wire type. */
  tag = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Where all of the bytes end. */
  get end(): number {
    return this.#bytes.length;
  }

  /** Where the reader is. It may be moved to an end that `message` has returned. */
  get at(): number {
    return this.#at;
  }

  set at(place: number) {
    this.#at = place;
  }

  /** Reads the tag of the next field; false at the end of the message. */
  next(end: number): boolean {
    if (this.#at > end) throw new MalformedProtobufError();
    if (this.#at === end) return false;
    this.tag = this.varint();
    return true;
  }

  /** Skips the value of the current field. */
  skip(): void {
    switch (this.tag & 7) {
      case WIRE_TYPE.varint:
        this.varint();
        return;
      case WIRE_TYPE.fixed64:
        this.#advance(8);
        return;
      case WIRE_TYPE.bytes:
        this.#at = this.message();
        return;
      case WIRE_TYPE.fixed32:
        this.#advance(4);
        return;
      default:
        throw new MalformedProtobufError();
    }
  }

  /** Reads a varint. Beyond 2^53 it is not exact. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let shift = 0; shift <= MAX_SHIFT; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new MalformedProtobufError();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    throw new MalformedProtobufError();
  }

  /** Reads an int64: a number if it is short, as almost all are, otherwise a bigint. */
  int64(): number | bigint {
    const start = this.#at;
    const value = this.varint();
    if (this.#at - start <= MAX_EXACT_BYTES) return value;
    this.#at = start;
    return this.#long();
  }

  #long(): bigint {
    let value = 0n;
    for (let shift = 0; shift <= MAX_SHIFT; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new MalformedProtobufError();
      value |= BigInt(byte & 0x7f) << BigInt(shift);
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new MalformedProtobufError();
  }

  /** Reads a fixed64 without sign. */
  fixed64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#advance(8));
  }

  /** Reads a fixed32. */
  fixed32(): number {
    return this.#bytes.readUInt32LE(this.#advance(4));
  }

  /** Reads a double. */
  double(): number {
    return this.#bytes.readDoubleLE(this.#advance(8));
  }

  /** Reads the length of a field, and returns where it ends. */
  message(): number {
    const end = this.varint() + this.#at;
    if (end > this.#bytes.length) throw new MalformedProtobufError();
    return end;
  }

  /** Reads a text. What is no UTF-8 becomes U+FFFD. */
  text(): string {
    const end = this.message();
    const text = this.#bytes.toString('utf8', this.#at, end);
    this.#at = end;
    return text;
  }

  /** The text of the next field if it is one of these; undefined, with nothing read, if it is not. */
  knownText(texts: KnownTexts): string | undefined {
    const start = this.#at;
    const end = this.message();
    for (const { bytes, text } of texts.get(end - this.#at) ?? []) {
      if (!this.#startsWith(bytes)) continue;
      this.#at = end;
      return text;
    }
    this.#at = start;
    return undefined;
  }

  #startsWith(bytes: Uint8Array): boolean {
    for (let index = bytes.length - 1; index >= 0; index--) {
      if (this.#bytes[this.#at + index] !== bytes[index]) return false;
    }
    return true;
  }

  /** Whether so many bytes at two places are the same. */
  isSame(place: number, other: number, length: number): boolean {
    // From the end: what differs in attributes that are alike is their values.
    for (let index = length - 1; index >= 0; index--) {
      if (this.#bytes[place + index] !== this.#bytes[other + index]) return false;
    }
    return true;
  }

  /** Reads bytes as lower-case hex. */
  hex(): string {
    const end = this.message();
    const hex = this.#bytes.toString('hex', this.#at, end);
    this.#at = end;
    return hex;
  }

  /** Moves on, and returns where it was. */
  #advance(byteCount: number): number {
    const at = this.#at;
    this.#at += byteCount;
    if (this.#at > this.#bytes.length) throw new MalformedProtobufError();
    return at;
  }
}

/** Reads a message that is all of the bytes; null if it is malformed. */
export function readMessage<Result>(
  bytes: Uint8Array,
  read: (reader: ProtobufReader, end: number) => Result,
): Result | null {
  const reader = new ProtobufReader(bytes);
  try {
    return read(reader, reader.end);
  } catch (error) {
    if (error instanceof MalformedProtobufError) return null;
    throw error;
  }
}
