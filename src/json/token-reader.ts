import { BACKSLASH, GrowingBytes, isWhiteSpace, QUOTE } from '#json/bytes';
import { toKnownKey } from './known-keys.ts';
import { isDigit } from './lexer.ts';
import { ZERO } from './literal-bytes.ts';

/** Longer keys, as written, are not wanted by any caller. */
const MAX_KEY_BYTES = 256;

/**
 * Cuts keys and values out of JSON that passes in chunks, one at a time. The caller, which tracks strings and nesting,
 * says where each token begins and ends.
 */
export class TokenReader {
  /** The last key; undefined if it is not complete, or not a short string. */
  key: string | undefined;

  #reading: 'nothing' | 'key' | 'value' = 'nothing';
  /** Where the token begins in the current chunk, and what earlier chunks had of it. */
  #from = 0;
  #earlierBytes = 0;
  #maxBytes = 0;
  readonly #earlier = new GrowingBytes();

  /** Whether a value is being read. */
  get isInValue(): boolean {
    return this.#reading === 'value';
  }

  /** A key begins at `at`. */
  beginKey(at: number): void {
    this.key = undefined;
    this.#begin('key', at, MAX_KEY_BYTES);
  }

  /** The value of the current key begins at `at`. It is wanted up to `maxBytes`. */
  beginValue(at: number, maxBytes: number): void {
    this.#begin('value', at, maxBytes);
  }

  /** There is a colon at `at`. Returns whether it ended a key. */
  endKey(chunk: Buffer, at: number): boolean {
    if (this.#reading !== 'key') return false;
    this.#reading = 'nothing';
    const sizeBytes = this.#earlierBytes + at - this.#from;
    if (sizeBytes > MAX_KEY_BYTES) return true;
    if (this.#earlierBytes === 0) this.key = readKey(chunk, this.#from, at);
    else this.key = readKey(this.#earlier.take(chunk, this.#from, at), 0, sizeBytes);
    return true;
  }

  /** The token ends at `at`. Returns a copy, which keeps no chunk alive; undefined if the token is too large. */
  end(chunk: Buffer, at: number): Buffer | undefined {
    this.#reading = 'nothing';
    if (this.#earlierBytes + at - this.#from > this.#maxBytes) return undefined;
    return this.#earlier.take(chunk, this.#from, at);
  }

  /** The token ends at `at`. Returns its string, number or literal; undefined if it is not one, or too large. */
  endScalar(chunk: Buffer, at: number): unknown {
    this.#reading = 'nothing';
    const sizeBytes = this.#earlierBytes + at - this.#from;
    if (sizeBytes > this.#maxBytes) return undefined;
    if (this.#earlierBytes === 0) return readScalar(chunk, this.#from, at);
    return readScalar(this.#earlier.take(chunk, this.#from, at), 0, sizeBytes);
  }

  /** Drops the current key and token. */
  forget(): void {
    this.key = undefined;
    this.#reading = 'nothing';
  }

  /** The chunk ends: copies its part of the current token, unless the token is already too large. */
  carry(chunk: Buffer): void {
    if (this.#reading === 'nothing') return;
    this.#earlierBytes += chunk.length - this.#from;
    if (this.#earlierBytes > this.#maxBytes) this.#earlier.clear();
    else this.#earlier.add(chunk, this.#from, chunk.length);
    this.#from = 0;
  }

  #begin(what: 'key' | 'value', at: number, maxBytes: number): void {
    this.#reading = what;
    this.#from = at;
    this.#maxBytes = maxBytes;
    if (this.#earlierBytes === 0) return;
    this.#earlierBytes = 0;
    this.#earlier.clear();
  }
}

/** Decodes a key; undefined if it is not a string. */
function readKey(bytes: Buffer, from: number, to: number): string | undefined {
  const start = skipWhiteSpace(bytes, from, to);
  const end = skipWhiteSpaceBack(bytes, start, to);
  if (end - start < 2 || bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) return undefined;
  const known = toKnownKey(bytes, start + 1, end - 1);
  if (known !== undefined) return known;
  if (isPlainString(bytes, start, end)) return bytes.toString('latin1', start + 1, end - 1);
  const value = parse(bytes, start, end);
  return typeof value === 'string' ? value : undefined;
}

/** Decodes a scalar. One digit and plain words, which most choices have, skip JSON.parse: a third of the time. */
function readScalar(bytes: Buffer, from: number, to: number): unknown {
  const start = skipWhiteSpace(bytes, from, to);
  const end = skipWhiteSpaceBack(bytes, start, to);
  if (end - start === 1 && isDigit(bytes[start] as number)) return (bytes[start] as number) - ZERO;
  if (isPlainString(bytes, start, end)) return bytes.toString('latin1', start + 1, end - 1);
  const value = parse(bytes, start, end);
  return typeof value === 'object' ? undefined : value;
}

/** Whether the bytes are a string of printable ASCII without escapes. */
function isPlainString(bytes: Buffer, start: number, end: number): boolean {
  if (end - start < 2 || bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) return false;
  for (let at = start + 1; at < end - 1; at++) {
    const byte = bytes[at] as number;
    if (byte < 0x20 || byte > 0x7e || byte === QUOTE || byte === BACKSLASH) return false;
  }
  return true;
}

function parse(bytes: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end));
  } catch {
    // The error is dropped: V8's message quotes its input.
    return undefined;
  }
}

function skipWhiteSpace(bytes: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && isWhiteSpace(bytes[at])) at++;
  return at;
}

function skipWhiteSpaceBack(bytes: Buffer, from: number, to: number): number {
  let at = to;
  while (at > from && isWhiteSpace(bytes[at - 1])) at--;
  return at;
}
