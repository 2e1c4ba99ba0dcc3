import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '#json/bytes';
import { toKnownKey } from './known-keys.ts';
import { isDigit, JsonLexer, JsonSyntaxError, NOTHING } from './lexer.ts';
import { LOWER_F, LOWER_N, LOWER_T, MINUS, ZERO } from './literal-bytes.ts';
import { type MemberAllowance, UNBOUNDED } from './member-allowance.ts';

/** The kinds of JSON value that {@link JsonCursor.peek} returns. */
export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'true' | 'false' | 'null';

/** A range of bytes: `start` is the first, `end` is one past the last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

/** Integers of up to this many characters are exact in a double at every step, so they need no string. */
const EXACT_INTEGER_CHARS = 15;

/** Most cursors never skip a container, so the stack is made on demand. */
const NO_NESTING = new Uint8Array(0);

/** A larger nesting stack is dropped after the value that needed it. */
const KEPT_NESTING_BYTES = 4096;

/**
 * A strict pull reader of one JSON text (RFC 8259) in bytes, in place. It builds no tree, copies only what is asked
 * for, and follows any depth of nesting without recursion. It accepts one leading byte order mark and white space
 * around the text. It does not check for invalid UTF-8 inside strings.
 *
 * The caller follows the text: `beginObject`, then `nextKey` until it returns false, and reads or skips exactly one
 * value after each key. Arrays work the same way. Every method throws {@link JsonSyntaxError} if the text is not JSON,
 * or the next value is not of the requested kind: call {@link peek} first.
 */
export class JsonCursor {
  /** Offset of the opening quote of the last key. */
  keyStart = 0;
  /** Start of the last value read or skipped. For a string read as a span, without the quotes. */
  valueStart = 0;
  /** One past the last value read or skipped, or past the last object or array whose end was reached. */
  valueEnd = 0;
  #bytes: Buffer;
  readonly #lexer: JsonLexer;
  readonly #allowance: MemberAllowance;
  /** How many members and elements may be read or skipped before the allowance is asked again. */
  #membersLeft: number;
  /** Whether a container was just opened: then no comma precedes the next member. */
  #opened = false;
  #keyEnd = 0;
  #keyHasEscapes = false;
  /** The opening bytes of the containers that {@link skip} is in. */
  #nesting = NO_NESTING;

  /** @param end one past the last byte of the text; `start` and `end` default to the whole buffer */
  constructor(bytes: Buffer, start = 0, end = bytes.length, allowance: MemberAllowance = UNBOUNDED) {
    this.#bytes = bytes;
    this.#lexer = new JsonLexer(bytes, start, end);
    this.#allowance = allowance;
    this.#membersLeft = allowance.count;
  }

  /** A cursor over bytes that are known to be JSON. In strings it looks only for the end. */
  static ofChecked(bytes: Buffer, allowance: MemberAllowance = UNBOUNDED): JsonCursor {
    const cursor = new JsonCursor(bytes, 0, bytes.length, allowance);
    cursor.#lexer.isChecked = true;
    return cursor;
  }

  /** Starts over on another text, so that one cursor serves many texts. */
  reset(bytes: Buffer, start: number, end: number): this {
    this.#bytes = bytes;
    this.#lexer.reset(bytes, start, end);
    this.#membersLeft = this.#allowance.count;
    this.#opened = false;
    return this;
  }

  /** Offset of the next byte to read. */
  get position(): number {
    return this.#lexer.position;
  }

  /** The kind of the next value. Consumes nothing. */
  peek(): JsonKind {
    const byte = this.#lexer.nextByte();
    switch (byte) {
      case OPEN_BRACE:
        return 'object';
      case OPEN_BRACKET:
        return 'array';
      case QUOTE:
        return 'string';
      case LOWER_T:
        return 'true';
      case LOWER_F:
        return 'false';
      case LOWER_N:
        return 'null';
      default:
        if (byte === MINUS || isDigit(byte)) return 'number';
        throw new JsonSyntaxError(this.#lexer.position);
    }
  }

  /** Consumes an opening brace. */
  beginObject(): void {
    this.#lexer.expect(OPEN_BRACE);
    this.#opened = true;
  }

  /** Consumes the next key and its colon and returns true, or the closing brace and returns false. */
  nextKey(): boolean {
    if (!this.#nextMember(CLOSE_BRACE)) return false;
    this.#lexer.expect(QUOTE);
    this.keyStart = this.#lexer.position - 1;
    this.#keyEnd = this.#lexer.scanString();
    this.#keyHasEscapes = this.#lexer.hasEscapes;
    this.#lexer.expect(COLON);
    return true;
  }

  /** The last key that {@link nextKey} read, decoded. */
  key(): string {
    const start = this.keyStart + 1;
    return (
      toKnownKey(this.#bytes, start, this.#keyEnd) ?? this.#decode(start, this.#keyEnd, this.#keyHasEscapes)
    );
  }

  /** Consumes an opening bracket. */
  beginArray(): void {
    this.#lexer.expect(OPEN_BRACKET);
    this.#opened = true;
  }

  /** Returns true before an element, or consumes the closing bracket and returns false. */
  nextElement(): boolean {
    return this.#nextMember(CLOSE_BRACKET);
  }

  /** Consumes and validates any value. Leaves its span in `valueStart` and `valueEnd`. */
  skip(): void {
    this.#lexer.nextByte();
    const start = this.#lexer.position;
    const { keyStart } = this;
    const keyEnd = this.#keyEnd;
    const keyHasEscapes = this.#keyHasEscapes;
    this.#skipValue();
    this.keyStart = keyStart;
    this.#keyEnd = keyEnd;
    this.#keyHasEscapes = keyHasEscapes;
    this.valueStart = start;
    this.valueEnd = this.#lexer.position;
  }

  /** Consumes and decodes a string. Bytes that are not UTF-8 become U+FFFD; lone surrogates stay. */
  readString(): string {
    return this.decodeString(this.readStringSpan());
  }

  /** Decodes the string that {@link readStringSpan} has just read, given its result. */
  decodeString(hasEscapes: boolean): string {
    return this.#decode(this.valueStart, this.valueEnd, hasEscapes);
  }

  /**
   * Consumes a string. Leaves the span between its quotes in `valueStart` and `valueEnd`.
   *
   * @returns whether the span may hold escapes; if not, the span is the string's UTF-8
   */
  readStringSpan(): boolean {
    this.#lexer.expect(QUOTE);
    this.valueStart = this.#lexer.position;
    this.valueEnd = this.#lexer.scanString();
    return this.#lexer.hasEscapes;
  }

  /** Consumes a number. One that a double cannot hold is rounded or infinite, as with JSON.parse. */
  readNumber(): number {
    this.#lexer.nextByte();
    const start = this.#lexer.position;
    const isInteger = this.#lexer.scanNumber();
    this.valueStart = start;
    this.valueEnd = this.#lexer.position;
    if (!isInteger || this.#lexer.position - start > EXACT_INTEGER_CHARS) {
      return Number(this.#bytes.toString('latin1', start, this.#lexer.position));
    }
    const isNegative = this.#bytes[start] === MINUS;
    let value = 0;
    for (let at = isNegative ? start + 1 : start; at < this.#lexer.position; at++) {
      value = value * 10 + (this.#bytes[at] as number) - ZERO;
    }
    return isNegative ? -value : value;
  }

  /** Consumes `true` or `false`. */
  readBoolean(): boolean {
    const value = this.peek() === 'true';
    this.#readLiteral(value ? TRUE : FALSE);
    return value;
  }

  /** Consumes `null`. */
  readNull(): void {
    this.#lexer.nextByte();
    this.#readLiteral(NULL);
  }

  /** Checks that only white space follows. */
  end(): void {
    if (this.#lexer.nextByte() !== NOTHING) throw new JsonSyntaxError(this.#lexer.position);
  }

  #readLiteral(literal: Buffer): void {
    this.valueStart = this.#lexer.position;
    this.#lexer.readLiteral(literal);
    this.valueEnd = this.#lexer.position;
  }

  /** Consumes the comma before the next member and returns true, or the closing byte and returns false. */
  #nextMember(closing: number): boolean {
    const byte = this.#lexer.nextByte();
    if (byte === closing) {
      this.#opened = false;
      this.valueEnd = ++this.#lexer.position;
      return false;
    }
    if (--this.#membersLeft < 0) this.#askForMore();
    if (this.#opened) {
      this.#opened = false;
      return true;
    }
    if (byte !== COMMA) throw new JsonSyntaxError(this.#lexer.position);
    this.#lexer.position++;
    return true;
  }

  #askForMore(): void {
    this.#allowance.onSpent();
    this.#membersLeft = this.#allowance.count - 1;
  }

  #skipValue(): void {
    let depth = 0;
    do {
      const byte = this.#lexer.nextByte();
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (depth === this.#nesting.length) this.#growNesting();
        this.#nesting[depth++] = byte;
        this.#lexer.position++;
        this.#opened = true;
      } else {
        this.#skipScalar(byte);
      }
      while (depth > 0) {
        const hasMore = this.#nesting[depth - 1] === OPEN_BRACE ? this.nextKey() : this.nextElement();
        if (hasMore) break;
        depth--;
      }
    } while (depth > 0);
    if (this.#nesting.length > KEPT_NESTING_BYTES) this.#nesting = NO_NESTING;
  }

  #growNesting(): void {
    const grown = new Uint8Array(Math.max(64, this.#nesting.length * 2));
    grown.set(this.#nesting);
    this.#nesting = grown;
  }

  #skipScalar(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#lexer.position++;
        this.#lexer.scanString();
        return;
      case LOWER_T:
        this.#lexer.readLiteral(TRUE);
        return;
      case LOWER_F:
        this.#lexer.readLiteral(FALSE);
        return;
      case LOWER_N:
        this.#lexer.readLiteral(NULL);
        return;
      default:
        this.#lexer.scanNumber();
    }
  }

  /** Decodes a string given without its quotes. It was scanned before, so JSON.parse cannot fail on it. */
  #decode(start: number, end: number, hasEscapes: boolean): string {
    if (!hasEscapes) return this.#bytes.toString('utf8', start, end);
    return JSON.parse(this.#bytes.toString('utf8', start - 1, end + 1)) as string;
  }
}
