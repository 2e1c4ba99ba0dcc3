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
import type { Fields } from './fields.ts';
import type { Framing } from './head.ts';
import { HttpError } from './http-error.ts';
import { TrailerSection } from './trailer-section.ts';

/** Receives the body of a message as it is read. */
export interface BodySink {
  /** `view`: a view into the bytes passed to `read`, valid as long as they are. */
  onData(view: Buffer): void;
}

/**
 * The states: what the next byte is.
 * ```
 *  DONE ◄── length is 0 ── DATA_OF_LENGTH          UNTIL_CLOSE ── end() ──► DONE
 *
 *           ┌────────────── DATA_LF ◄── DATA_CR ◄──────────────┐
 *           ▼                                                  │
 *  SIZE_START ─► SIZE ─┬─────────────────► SIZE_LF ──► DATA ──┘
 *                      └─► EXTENSION_… ───►   └─ size is 0 ─► TRAILERS ─► DONE
 * ```
 */
const DONE = 0;
const DATA_OF_LENGTH = 1;
const UNTIL_CLOSE = 2;
const SIZE_START = 3;
const SIZE = 4;
const EXTENSION_START = 5;
const EXTENSION_NAME = 6;
const EXTENSION_VALUE_START = 7;
const EXTENSION_TOKEN = 8;
const EXTENSION_QUOTED = 9;
const EXTENSION_ESCAPED = 10;
const EXTENSION_QUOTED_END = 11;
const SIZE_LF = 12;
const DATA = 13;
const DATA_CR = 14;
const DATA_LF = 15;
const TRAILERS = 16;

const MAX_SIZE_DIGITS = 15;
const DEFAULT_MAX_LINE_BYTES = 4096;
const DEFAULT_MAX_TRAILER_BYTES = 16 * 1024;
const NOT_A_DIGIT = 255;

/** The value of each byte as a hexadecimal digit. */
const HEX_DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(digit) ? NOT_A_DIGIT : digit;
});

/**
 * Reads the bodies of successive messages from reads that may be split anywhere (RFC 9112 6, 7). It copies only trailer
 * fields, and examines each byte of a line once, however the line is split.
 */
export class BodyReader {
  readonly #maxLineBytes: number;
  readonly #trailers: TrailerSection;
  #state = DONE;
  /**
   * How many bytes of the body or the current chunk have not arrived. While a chunk size is read: its value so far.
   */
  #leftBytes = 0;
  #sizeDigits = 0;
  #lineBytes = 0;
  /** Where the body data of the current read is, after its chunks have been joined. */
  #joinedStart = -1;
  #joinedEnd = -1;

  /** `maxLineBytes` limits a chunk-size line with its extensions, `maxTrailerBytes` the trailer section. */
  constructor(limits: { readonly maxLineBytes?: number; readonly maxTrailerBytes?: number } = {}) {
    this.#maxLineBytes = limits.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES;
    this.#trailers = new TrailerSection(limits.maxTrailerBytes ?? DEFAULT_MAX_TRAILER_BYTES);
  }

  /** Whether the body is complete. */
  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** The trailer fields of a complete chunked body; empty otherwise. */
  get trailers(): Fields {
    return this.#trailers.fields;
  }

  /** Begins the body of the next message. A message without a body, or with length 0, is done at once. */
  start(framing: Framing): void {
    this.#trailers.start();
    switch (framing.kind) {
      case 'none':
        this.#state = DONE;
        break;
      case 'length':
        this.#state = framing.bytes === 0 ? DONE : DATA_OF_LENGTH;
        this.#leftBytes = framing.bytes;
        break;
      case 'chunked':
        this.#startSize();
        break;
      case 'until_close':
        this.#state = UNTIL_CLOSE;
        break;
    }
  }

  /**
   * Reads from `start`, passes the body data to the sink in one view, and returns the offset of the first byte after
   * the body. Chunks are joined in place in `bytes`, over their framing, so that a reader of events gets 16 chunks in
   * one piece, not in 16. Throws HttpError('malformed'); the reader cannot be used again until the next `start`.
   */
  read(bytes: Buffer, start: number, sink: BodySink): number {
    this.#joinedStart = this.#joinedEnd = -1;
    try {
      return this.#read(bytes, start);
    } finally {
      // Data before an error is part of the body too.
      if (this.#joinedStart !== -1) sink.onData(viewOf(bytes, this.#joinedStart, this.#joinedEnd));
    }
  }

  #read(bytes: Buffer, start: number): number {
    let at = start;
    while (at < bytes.length) {
      switch (this.#state) {
        case DONE:
          return at;
        case UNTIL_CLOSE:
          this.#join(bytes, at, bytes.length);
          return bytes.length;
        case DATA_OF_LENGTH:
        case DATA:
          at = this.#readData(bytes, at);
          break;
        case TRAILERS:
          at = this.#trailers.read(bytes, at);
          if (this.#trailers.isDone) this.#state = DONE;
          break;
        default:
          at = this.#readSizeLine(bytes, at);
      }
    }
    return at;
  }

  /**
   * The peer has closed its side, which completes a body without a length. Throws HttpError('closed_early') if any
   * other body is incomplete.
   */
  end(): void {
    if (this.#state === UNTIL_CLOSE) this.#state = DONE;
    if (this.#state !== DONE) throw new HttpError('closed_early');
  }

  #startSize(): void {
    this.#state = SIZE_START;
    this.#leftBytes = 0;
    this.#sizeDigits = 0;
    this.#lineBytes = 0;
  }

  #readData(bytes: Buffer, start: number): number {
    const end = Math.min(bytes.length, start + this.#leftBytes);
    this.#leftBytes -= end - start;
    if (this.#leftBytes === 0) this.#state = this.#state === DATA ? DATA_CR : DONE;
    this.#join(bytes, start, end);
    return end;
  }

  /** Appends a piece of the body to the pieces before it. */
  #join(bytes: Buffer, start: number, end: number): void {
    if (this.#joinedStart === -1) {
      this.#joinedStart = start;
      this.#joinedEnd = end;
    } else {
      bytes.copyWithin(this.#joinedEnd, start, end);
      this.#joinedEnd += end - start;
    }
  }

  /** Reads the line end after chunk data, and the size line of the next chunk. */
  #readSizeLine(bytes: Buffer, start: number): number {
    let at = start;
    let state = this.#state;
    while (at < bytes.length) {
      const byte = bytes[at++] as number;
      state = this.#next(state, byte);
      if (state === SIZE_START) this.#startSize();
      else if (++this.#lineBytes > this.#maxLineBytes) throw new HttpError('malformed');
      if (state === DATA || state === TRAILERS) {
        this.#lineBytes = 0;
        break;
      }
    }
    this.#state = state;
    return at;
  }

  /** Returns the state after one more byte of chunk framing. */
  #next(state: number, byte: number): number {
    switch (state) {
      case DATA_CR:
        return expected(byte === CR, DATA_LF);
      case DATA_LF:
        return expected(byte === LF, SIZE_START);
      case SIZE_LF:
        return expected(byte === LF, this.#leftBytes === 0 ? TRAILERS : DATA);
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
    const size = this.#leftBytes * 16 + digit;
    if (digit === NOT_A_DIGIT || ++this.#sizeDigits > MAX_SIZE_DIGITS || size > Number.MAX_SAFE_INTEGER) {
      throw new HttpError('malformed');
    }
    this.#leftBytes = size;
    return SIZE;
  }
}

function viewOf(bytes: Buffer, start: number, end: number): Buffer {
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

/** After a complete part of the line comes the next extension or the line end. */
function afterPart(byte: number): number {
  return byte === SEMICOLON ? EXTENSION_START : expected(byte === CR, SIZE_LF);
}

function expected(isValid: boolean, next: number): number {
  if (!isValid) throw new HttpError('malformed');
  return next;
}
