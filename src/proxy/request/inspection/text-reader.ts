import { isAscii } from 'node:buffer';
import { JsonCursor, type MemberAllowance, type Span } from '#json';
import { BACKSLASH, QUOTE } from '#json/bytes';
import { MIN_WIDE_BYTES, wideStrings } from '#json/strings';
import {
  countCodePoints,
  isContinuation,
  type PrefixChain,
  type PrefixHasher,
} from '../../record/prefix-hashes.ts';
import { NameDoubtsReader } from './member-names.ts';

const RECORD_SEPARATOR = Buffer.from('\u001e');
const SHORT_TEXT_BYTES = 64;

/** Values by the names of their members. */
export type Members = ReadonlyMap<string, Span>;

const NO_MEMBERS: Members = new Map();

/** Counts and hashes the text that an endpoint finds in a request body. The body is known to be JSON. */
export class TextReader {
  /** Unicode code points of the text so far. */
  chars = 0;
  /** Of the objects in the text. */
  readonly names = new NameDoubtsReader();
  readonly #body: Buffer;
  readonly #hasher: PrefixHasher;
  readonly #chain: PrefixChain;
  readonly #allowance: MemberAllowance | undefined;
  readonly #cursors: JsonCursor[] = [];
  #isOnlyCounting = false;

  constructor(body: Buffer, hasher: PrefixHasher, chain: PrefixChain, allowance?: MemberAllowance) {
    this.#body = body;
    this.#hasher = hasher;
    this.#chain = chain;
    this.#allowance = allowance;
  }

  /** Whether further text makes no difference to the hashes. */
  get isFull(): boolean {
    return this.#isOnlyCounting || this.#chain.isFull;
  }

  /** From now on text is counted and not hashed. Call it first for a text that no engine reads as one prompt. */
  countOnly(): void {
    this.#isOnlyCounting = true;
  }

  /**
   * A cursor over a value. There is one cursor per level of nesting, reused: to make one takes as long as to read a
   * short text. It is good until the next call with the same level.
   */
  cursorAt(level: number, { start, end }: Span): JsonCursor {
    let cursor = this.#cursors[level];
    if (cursor === undefined) {
      cursor = JsonCursor.ofChecked(this.#body, this.#allowance);
      this.#cursors[level] = cursor;
    }
    return cursor.reset(this.#body, start, end);
  }

  /** A view of a value's bytes, good as long as the body. */
  bytesAt({ start, end }: Span): Buffer {
    return this.#body.subarray(start, end);
  }

  /** The UTF-8 of the value if it is a string. */
  stringAt(span: Span | undefined): Buffer | undefined {
    const isString = span !== undefined && this.#body[span.start] === QUOTE;
    return isString ? utf8OfString(this.#body, span) : undefined;
  }

  /** Hashes bytes that do not count as text: roles, separators. */
  hash(bytes: Buffer): void {
    if (!this.isFull) this.#chain.add(bytes);
  }

  /** Hashes the mark of a medium. */
  hashMedium(payload: Buffer): void {
    if (!this.isFull) this.#chain.add(this.#hasher.mediaMark(payload));
  }

  /** Counts and hashes text. */
  addText(utf8: Buffer): void {
    if (utf8.length === 0) return;
    const isOneByteEach = isAscii(utf8);
    this.chars += isOneByteEach ? utf8.length : countCodePoints(utf8);
    if (!this.isFull) this.#chain.add(utf8, isOneByteEach);
  }

  /** Counts and hashes the cursor's next value, a string. */
  addString(cursor: JsonCursor): void {
    cursor.skip();
    const { valueStart, valueEnd } = cursor;
    if (this.isFull && this.#countPlain(valueStart + 1, valueEnd - 1)) return;
    this.addText(utf8OfString(this.#body, { start: valueStart, end: valueEnd }));
  }

  /** Counts and hashes a string or a list of strings. Returns false if the value is absent or anything else. */
  addStrings(value: Span | undefined): boolean {
    if (value === undefined) return false;
    const cursor = this.cursorAt(0, value);
    if (cursor.peek() === 'string') {
      this.addString(cursor);
      return true;
    }
    if (cursor.peek() !== 'array') return false;
    cursor.beginArray();
    for (let index = 0; cursor.nextElement(); index++) {
      if (cursor.peek() !== 'string') return false;
      if (index > 0) this.hash(RECORD_SEPARATOR);
      this.addString(cursor);
    }
    return true;
  }

  /** Reads each element of a list. Returns false if the value is absent or no list. */
  readList(level: number, list: Span | undefined, read: (cursor: JsonCursor) => void): boolean {
    if (list === undefined) return false;
    const cursor = this.cursorAt(level, list);
    if (cursor.peek() !== 'array') return false;
    cursor.beginArray();
    while (cursor.nextElement()) read(cursor);
    return true;
  }

  /** Reads a string, or a list of strings and of parts. Returns false if the value is absent or anything else. */
  readContent(
    level: number,
    content: Span | undefined,
    wanted: ReadonlySet<string>,
    readPart: (members: Members) => void,
  ): boolean {
    const text = this.stringAt(content);
    if (text !== undefined) {
      this.addText(text);
      return true;
    }
    return this.readList(level, content, (cursor) => {
      if (cursor.peek() === 'string') this.addString(cursor);
      else readPart(readMembers(cursor, wanted, this.names));
    });
  }

  /**
   * Counts a short text without escapes in place and returns true. A body may hold millions of them, and a view of
   * each takes longer. Any other text is left: then it returns false.
   */
  #countPlain(start: number, end: number): boolean {
    if (end - start > SHORT_TEXT_BYTES) return false;
    let count = 0;
    for (let at = start; at < end; at++) {
      const byte = this.#body[at] as number;
      if (byte === BACKSLASH) return false;
      if (!isContinuation(byte)) count++;
    }
    this.chars += count;
    return true;
  }
}

/**
 * The wanted members of the cursor's next object; of duplicates the last. None if the value is not an object.
 *
 * @param names notes doubts about the names; null: they may be the client's own
 */
export function readMembers(
  cursor: JsonCursor,
  wanted: ReadonlySet<string>,
  names: NameDoubtsReader | null,
): Members {
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return NO_MEMBERS;
  }
  const members = new Map<string, Span>();
  cursor.beginObject();
  while (cursor.nextKey()) {
    const key = cursor.key();
    cursor.skip();
    if (wanted.has(key)) {
      names?.noteRead(key, members.has(key));
      members.set(key, { start: cursor.valueStart, end: cursor.valueEnd });
    } else {
      names?.noteUnread(key, wanted);
    }
  }
  return members;
}

/**
 * The UTF-8 of a string that a cursor has read before, given with its quotes: a view of `bytes` if it has no escapes.
 * Lone surrogates become U+FFFD.
 */
function utf8OfString(bytes: Buffer, { start, end }: Span): Buffer {
  const written = bytes.subarray(start + 1, end - 1);
  if (!written.includes(BACKSLASH)) return written;
  if (wideStrings !== null && written.length >= MIN_WIDE_BYTES)
    return wideStrings.decode(bytes, start + 1, end - 1);
  return Buffer.from(JSON.parse(bytes.toString('utf8', start, end)) as string);
}
