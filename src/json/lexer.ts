import { BACKSLASH, QUOTE, viewOf } from '#json/bytes';
import { MIN_WIDE_BYTES, wideStrings } from '#json/strings';
import { DOT, LOWER_E, MINUS, NINE, PLUS, ZERO } from './literal-bytes.ts';

/** The bytes are not one JSON text. The message names the offset only, since the input may be a prompt. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
  /** Offset in bytes from the start of the cursor's buffer. */
  readonly offset: number;

  constructor(offset: number) {
    super(`invalid JSON at byte ${offset}`);
    this.offset = offset;
  }
}

/** The result of {@link JsonLexer.nextByte} at the end of the text. No byte has this value. */
export const NOTHING = -1;

/** Strings up to this length are scanned byte by byte: for them a DataView costs more than it saves. */
const SHORT_STRING_BYTES = 64;

/**
 * Reads the tokens of JSON in place: white space, strings, numbers and literals. `JsonCursor` follows the nesting.
 * Every method throws {@link JsonSyntaxError} if the bytes are not JSON.
 */
export class JsonLexer {
  /** Offset of the next byte to read. */
  position = 0;
  /** Whether the last string of {@link scanString} may have escapes. */
  hasEscapes = false;
  /** Whether the text is known to be JSON: then strings are only searched for their ends. */
  isChecked = false;

  #bytes: Buffer;
  #end = 0;
  #view: DataView | undefined;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.reset(bytes, start, end);
  }

  /** Starts over on another text, after its byte order mark if it has one. */
  reset(bytes: Buffer, start: number, end: number): void {
    if (bytes !== this.#bytes) this.#view = undefined;
    this.#bytes = bytes;
    this.#end = end;
    const hasMark =
      end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
    this.position = hasMark ? start + 3 : start;
  }

  /** Skips white space and returns the next byte without consuming it; {@link NOTHING} at the end. */
  nextByte(): number {
    const bytes = this.#bytes;
    let at = this.position;
    while (at < this.#end) {
      const byte = bytes[at] as number;
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
        this.position = at;
        return byte;
      }
      at++;
    }
    this.position = at;
    return NOTHING;
  }

  /** Skips white space and consumes this byte. */
  expect(byte: number): void {
    if (this.nextByte() !== byte) throw new JsonSyntaxError(this.position);
    this.position++;
  }

  /** Consumes `true`, `false` or `null`, given as bytes. */
  readLiteral(literal: Buffer): void {
    const start = this.position;
    for (let i = 0; i < literal.length; i++) {
      if (start + i >= this.#end || this.#bytes[start + i] !== literal[i]) {
        throw new JsonSyntaxError(start + i);
      }
    }
    this.position = start + literal.length;
  }

  /** Scans a string from after its opening quote. Returns the offset of the closing quote. */
  scanString(): number {
    if (this.isChecked) return this.#scanCheckedString();
    const bytes = this.#bytes;
    const end = this.#end;
    let at = this.position;
    const wordsFrom = at + SHORT_STRING_BYTES;
    const wideFrom = wideStrings === null ? end : at + MIN_WIDE_BYTES;
    this.hasEscapes = false;
    while (at < end) {
      if (at >= wordsFrom) {
        at = at >= wideFrom ? this.#skipWide(at) : this.#skipPlainWords(at, Math.min(wideFrom, end));
        if (at >= end) break;
      }
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.position = at + 1;
        return at;
      }
      if (byte < 0x20) throw new JsonSyntaxError(at);
      if (byte === BACKSLASH) {
        this.hasEscapes = true;
        at = this.#skipEscape(at);
      } else {
        at++;
      }
    }
    throw new JsonSyntaxError(end);
  }

  /** The same as {@link scanString}, for what is known to be a string. */
  #scanCheckedString(): number {
    const bytes = this.#bytes;
    let at = this.position;
    const searchFrom = Math.min(at + SHORT_STRING_BYTES, this.#end);
    at = endOfChecked(bytes, at, searchFrom);
    this.hasEscapes = true;
    if (at >= searchFrom) {
      const quote = bytes.indexOf(QUOTE, at);
      // A string with one escaped quote usually has more: a search for each would take longer.
      if (quote > 0 && bytes[quote - 1] !== BACKSLASH) at = quote;
      else at = wideStrings?.skip(bytes, at, this.#end) ?? endOfChecked(bytes, at, this.#end);
    }
    if (at >= this.#end) throw new JsonSyntaxError(this.#end);
    this.position = at + 1;
    return at;
  }

  /** Steps over valid escapes, too. */
  #skipWide(from: number): number {
    if (wideStrings === null) return from;
    const at = wideStrings.skip(this.#bytes, from, this.#end);
    if (wideStrings.hasEscapes) this.hasEscapes = true;
    return at;
  }

  /** Returns the offset of the next quote, backslash or control character, or near `end` an offset before it. */
  #skipPlainWords(from: number, end: number): number {
    this.#view ??= viewOf(this.#bytes);
    const view = this.#view;
    const last = end - 4;
    let at = from;
    for (; at <= last; at += 4) {
      const marks = marksOfSpecial(view.getInt32(at, true));
      if (marks !== 0) return at + offsetOfFirst(marks);
    }
    return at;
  }

  #skipEscape(at: number): number {
    const bytes = this.#bytes;
    const escaped = at + 1 < this.#end ? bytes[at + 1] : NOTHING;
    switch (escaped) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f: // /
      case 0x62: // b
      case 0x66: // f
      case 0x6e: // n
      case 0x72: // r
      case 0x74: // t
        return at + 2;
      case 0x75: // u
        for (let digit = at + 2; digit < at + 6; digit++) {
          if (digit >= this.#end || !isHexDigit(bytes[digit] as number)) throw new JsonSyntaxError(digit);
        }
        return at + 6;
      default:
        throw new JsonSyntaxError(at + 1);
    }
  }

  /** Scans a number. Returns whether it has neither fraction nor exponent. */
  scanNumber(): boolean {
    const bytes = this.#bytes;
    const at =
      this.position < this.#end && bytes[this.position] === MINUS ? this.position + 1 : this.position;
    const integerEnd = this.#scanDigits(at);
    if (bytes[at] === ZERO && integerEnd > at + 1) throw new JsonSyntaxError(at + 1);
    let end = integerEnd;
    if (end < this.#end && bytes[end] === DOT) end = this.#scanDigits(end + 1);
    if (end < this.#end && ((bytes[end] as number) | 0x20) === LOWER_E) {
      const sign = end + 1 < this.#end ? bytes[end + 1] : NOTHING;
      end = this.#scanDigits(sign === MINUS || sign === PLUS ? end + 2 : end + 1);
    }
    this.position = end;
    return end === integerEnd;
  }

  /** Scans one digit or more. */
  #scanDigits(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (at < this.#end && isDigit(bytes[at] as number)) at++;
    if (at === from) throw new JsonSyntaxError(from);
    return at;
  }
}

/**
 * Sets the highest bit of each of four bytes that is a quote, a backslash or below 0x20. In bytes above the first such
 * byte the bit may be set by mistake ("Determine if a word has a zero byte", "… a byte less than n": Anderson, Bit
 * Twiddling Hacks). With its second bit flipped a quote is 0x20 and a space is above it: one comparison tests both.
 */
function marksOfSpecial(word: number): number {
  const turned = word ^ 0x02020202;
  const backslash = word ^ 0x5c5c5c5c;
  return (((turned - 0x21212121) & ~turned) | ((backslash - 0x01010101) & ~backslash)) & 0x80808080;
}

/** The offset of the first mark. The lowest byte is the first. */
function offsetOfFirst(marks: number): number {
  return (31 - Math.clz32(marks & -marks)) >> 3;
}

/** Whether the byte is an ASCII digit. */
export function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function isHexDigit(byte: number): boolean {
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

/** Offset of the quote that ends a string, or of the first byte at or after `end` that is not part of an escape. */
function endOfChecked(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return at;
}
