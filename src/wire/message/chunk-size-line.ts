import {
  BACKSLASH,
  CR,
  EQUALS,
  LF,
  QUOTE,
  QUOTED_BYTES,
  SEMICOLON,
  TEXT_BYTES,
  TOKEN_BYTES,
} from './characters.ts';
import { HttpError } from './http-error.ts';

/**
 * The states: what the next byte is.
 * ```
 *  AFTER_DATA ─► AFTER_DATA_LF ─► SIZE_START ─► SIZE ─┬─────────────────► SIZE_LF ─► AFTER_DATA: complete
 *                                                     └─► EXTENSION_… ───►
 * ```
 */
const AFTER_DATA = 0;
const AFTER_DATA_LF = 1;
const SIZE_START = 2;
const SIZE = 3;
const EXTENSION_START = 4;
const EXTENSION_NAME = 5;
const EXTENSION_VALUE_START = 6;
const EXTENSION_TOKEN = 7;
const EXTENSION_QUOTED = 8;
const EXTENSION_ESCAPED = 9;
const EXTENSION_QUOTED_END = 10;
const SIZE_LF = 11;

const MAX_SIZE_DIGITS = 15;
const NOT_A_DIGIT = 255;

/** The value of each byte as a hexadecimal digit. */
const HEX_DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(digit) ? NOT_A_DIGIT : digit;
});

/**
 * Reads the line before each chunk, with the size of the chunk and extensions, which are ignored (RFC 9112 7.1). The line
 * end after the data of a chunk belongs to the next line. Examines each byte once, however the line is split.
 */
export class ChunkSizeLine {
  readonly #maxBytes: number;
  #state = SIZE_START;
  #sizeBytes = 0;
  #sizeDigits = 0;
  #lineBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the line is complete. */
  get isDone(): boolean {
    return this.#state === AFTER_DATA;
  }

  /** The size of the chunk in a complete line; 0 for the last. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Begins the first line of a body. */
  start(): void {
    this.#state = SIZE_START;
    this.#startSize();
  }

  /**
   * Reads from `start`, and returns the offset after the line's bytes. After a complete line it reads the next. Throws
   * HttpError.
   */
  read(bytes: Buffer, start: number): number {
    let at = start;
    let state = this.#state;
    while (at < bytes.length) {
      const byte = bytes[at++] as number;
      state = this.#next(state, byte);
      if (state === SIZE_START) this.#startSize();
      else if (++this.#lineBytes > this.#maxBytes) throw new HttpError('malformed');
      if (state === AFTER_DATA) {
        this.#lineBytes = 0;
        break;
      }
    }
    this.#state = state;
    return at;
  }

  #startSize(): void {
    this.#sizeBytes = 0;
    this.#sizeDigits = 0;
    this.#lineBytes = 0;
  }

  /** Returns the state after one more byte. */
  #next(state: number, byte: number): number {
    switch (state) {
      case AFTER_DATA:
        return expected(byte === CR, AFTER_DATA_LF);
      case AFTER_DATA_LF:
        return expected(byte === LF, SIZE_START);
      case SIZE_LF:
        return expected(byte === LF, AFTER_DATA);
      case SIZE_START:
        return this.#addDigit(byte);
      case SIZE:
        return HEX_DIGITS[byte] === NOT_A_DIGIT ? afterPart(byte) : this.#addDigit(byte);
      case EXTENSION_START:
        return expected(TOKEN_BYTES[byte] === 1, EXTENSION_NAME);
      case EXTENSION_NAME:
        if (TOKEN_BYTES[byte] === 1) return EXTENSION_NAME;
        return byte === EQUALS ? EXTENSION_VALUE_START : afterPart(byte);
      case EXTENSION_VALUE_START:
        return byte === QUOTE ? EXTENSION_QUOTED : expected(TOKEN_BYTES[byte] === 1, EXTENSION_TOKEN);
      case EXTENSION_TOKEN:
        return TOKEN_BYTES[byte] === 1 ? EXTENSION_TOKEN : afterPart(byte);
      case EXTENSION_QUOTED:
        if (byte === QUOTE) return EXTENSION_QUOTED_END;
        if (byte === BACKSLASH) return EXTENSION_ESCAPED;
        return expected(QUOTED_BYTES[byte] === 1, EXTENSION_QUOTED);
      case EXTENSION_ESCAPED:
        return expected(TEXT_BYTES[byte] === 1, EXTENSION_QUOTED);
      default:
        return afterPart(byte);
    }
  }

  #addDigit(byte: number): number {
    const digit = HEX_DIGITS[byte] as number;
    const size = this.#sizeBytes * 16 + digit;
    if (digit === NOT_A_DIGIT || ++this.#sizeDigits > MAX_SIZE_DIGITS || size > Number.MAX_SAFE_INTEGER) {
      throw new HttpError('malformed');
    }
    this.#sizeBytes = size;
    return SIZE;
  }
}

/** After a complete part of the line comes the next extension or the line end. */
function afterPart(byte: number): number {
  return byte === SEMICOLON ? EXTENSION_START : expected(byte === CR, SIZE_LF);
}

function expected(isValid: boolean, next: number): number {
  if (!isValid) throw new HttpError('malformed');
  return next;
}
