import type { HrTime } from '@opentelemetry/api';

/** The wire types of protobuf (protobuf.dev, "Encoding"). */
export const WIRE_TYPE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A UTF-16 unit is at most three bytes of UTF-8. */
export const MAX_UNIT_BYTES = 3;

const TWO_32 = 2 ** 32;
/** The bytes of the longest varint. */
export const MAX_VARINT_BYTES = 10;
/** A call into V8 for a text costs as much as this many units written one by one (60 ns, Node 26.10). */
const SHORT_CHARS = 64;

/** The number of bytes of a varint. `value`: a safe integer. A negative one is 64 bits, as protobuf wants int64. */
export function sizeOfVarint(value: number): number {
  if (value < 0) return MAX_VARINT_BYTES;
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  let size = 3;
  for (let rest = Math.floor(value / 0x200000); rest > 0; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

/** The tag of a field, which must be below 16: one byte before its value. */
export function toTag(field: number, wireType: (typeof WIRE_TYPE)[keyof typeof WIRE_TYPE]): number {
  return (field << 3) | wireType;
}

/**
 * Writes protobuf's wire format into memory that grows and is reused. Every length has the fewest bytes. Texts are
 * UTF-8, with U+FFFD in place of lone surrogates.
 *
 * `at` is where the next byte goes. `bytes` and `view` are the same memory; they change when it grows.
 */
export class ProtobufWriter {
  bytes: Buffer;
  view: DataView;
  at = 0;

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
    this.view = toView(this.bytes);
  }

  /** Makes room for so many bytes. What was written is kept. */
  reserve(byteCount: number): void {
    if (this.at + byteCount <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.bytes.length, this.at + byteCount));
    grown.set(this.bytes);
    this.bytes = grown;
    this.view = toView(grown);
  }

  /** Writes one byte, such as a tag. There must be room. */
  byte(value: number): void {
    this.bytes[this.at++] = value;
  }

  /** Writes a safe integer. There must be room. */
  varint(value: number): void {
    if (value < 0) {
      this.#negative(value);
      return;
    }
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) | 0x80);
    this.byte(rest);
  }

  /** In two's complement of 64 bits. It is rare: a count is never negative. */
  #negative(value: number): void {
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest >= 0x80n; rest >>= 7n) this.byte(Number(rest & 0x7fn) | 0x80);
    this.byte(Number(rest));
  }

  /** Writes a double. There must be room. */
  double(value: number): void {
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  /** Writes 32 bits. There must be room. */
  fixed32(value: number): void {
    this.view.setUint32(this.at, value, true);
    this.at += 4;
  }

  /** Writes a time as nanoseconds in 64 bits, which a double cannot hold. There must be room. */
  time([seconds, nanos]: HrTime): void {
    const high = Math.floor(seconds / 0x10000) * 1e9;
    const low = (high % 0x10000) * 0x10000 + (seconds % 0x10000) * 1e9 + nanos;
    this.fixed32(low % TWO_32);
    this.fixed32(Math.floor(high / 0x10000) + Math.floor(low / TWO_32));
  }

  /** Writes the bytes of an id in hex. There must be room. */
  hex(digits: string): void {
    for (let index = 0; index < digits.length; index += 2) {
      this.byte((toHexValue(digits.charCodeAt(index)) << 4) | toHexValue(digits.charCodeAt(index + 1)));
    }
  }

  /** Writes bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Writes a text without its length. */
  text(text: string): void {
    this.reserve(text.length * MAX_UNIT_BYTES);
    if (text.length > SHORT_CHARS || !this.ascii(text)) this.at += this.bytes.write(text, this.at);
  }

  /** Writes a text if it is ASCII. If not: false, and only a part is in memory, after `at`. There must be room. */
  ascii(text: string): boolean {
    const { bytes, at } = this;
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      if (unit > 0x7f) return false;
      bytes[at + index] = unit;
    }
    this.at += text.length;
    return true;
  }

  /** Writes a field with a text: its tag, its length, the text. */
  textField(tag: number, text: string): void {
    const start = this.begin(tag);
    this.text(text);
    this.end(start);
  }

  /** Begins a field with a length: a message, a text or bytes. Returns what `end` needs. */
  begin(tag: number): number {
    this.reserve(2);
    this.byte(tag);
    return ++this.at;
  }

  /** Ends the field: writes its length before it, and moves it if the length has more than one byte. */
  end(start: number): void {
    const length = this.at - start;
    const extra = sizeOfVarint(length) - 1;
    if (extra > 0) {
      this.reserve(extra);
      this.bytes.copyWithin(start + extra, start, this.at);
    }
    this.at = start - 1;
    this.varint(length);
    this.at += length;
  }
}

/** The value of a lower-case hex digit. */
function toHexValue(code: number): number {
  return code < 0x3a ? code & 0xf : code - 0x57;
}

function toView({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
