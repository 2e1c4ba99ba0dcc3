import { BACKSLASH, isWhiteSpace, QUOTE, ZERO } from './bytes.ts';
import { GrowingBytes } from './growing-bytes.ts';
import { toKnownKey } from './known-keys.ts';
import { isDigit } from './lexer.ts';

/** A key above this, as written, is none that anybody looks for. */
const MAX_KEY_BYTES = 256;

/**
 * Cuts keys and values out of JSON that passes in chunks, one at a time. Whoever knows where strings and nested values
 * are tells where they begin and end.
 */
export class TokenReader {
  /** The key read last; undefined if it is no short string, or not over. */
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

  /** The value of the present key begins at `at`, and is wanted if it is not larger than this. */
  beginValue(at: number, maxBytes: number): void {
    this.#begin('value', at, maxBytes);
  }

  /** A colon stands at `at`. Returns whether that ended a key. */
  endKey(chunk: Buffer, at: number): boolean {
    if (this.#reading !== 'key') return false;
    this.#reading = 'nothing';
    const sizeBytes = this.#earlierBytes + at - this.#from;
    if (sizeBytes > MAX_KEY_BYTES) return true;
    if (this.#earlierBytes === 0) this.key = readKey(chunk, this.#from, at);
    else this.key = readKey(this.#earlier.take(chunk, this.#from, at), 0, sizeBytes);
    return true;
  }

  /** The token ends at `at`: a copy, so that no chunk is kept alive by it; undefined if it is too large. */
  end(chunk: Buffer, at: number): Buffer | undefined {
    this.#reading = 'nothing';
    if (this.#earlierBytes + at - this.#from > this.#maxBytes) return undefined;
    return this.#earlier.take(chunk, this.#from, at);
  }

  /** The token ends at `at`: the string, number or literal that it is; undefined if it is none, or too large. */
  endScalar(chunk: Buffer, at: number): unknown {
    this.#reading = 'nothing';
    const sizeBytes = this.#earlierBytes + at - this.#from;
    if (sizeBytes > this.#maxBytes) return undefined;
    if (this.#earlierBytes === 0) return readScalar(chunk, this.#from, at);
    return readScalar(this.#earlier.take(chunk, this.#from, at), 0, sizeBytes);
  }

  /** No key is the present one, and nothing is read until the next begins. */
  forget(): void {
    this.key = undefined;
    this.#reading = 'nothing';
  }

  /** The chunk is over: keeps what belongs to the token being read, unless that is too large already. */
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

/** The key that stands there; undefined if it is no string, or a name that nobody knows: only known ones are looked for. */
function readKey(bytes: Buffer, from: number, to: number): string | undefined {
  const start = skipWhiteSpace(bytes, from, to);
  const end = skipWhiteSpaceBack(bytes, start, to);
  if (end - start < 2 || bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) return undefined;
  const known = toKnownKey(bytes, start + 1, end - 1);
  if (known !== undefined) return known;
  const isEscaped = bytes.subarray(start, end).includes(BACKSLASH);
  const value = isEscaped ? parse(bytes, start, end) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** The scalar that stands there. What most choices have, one digit and a plain word, is not parsed: a third of the time. */
function readScalar(bytes: Buffer, from: number, to: number): unknown {
  const start = skipWhiteSpace(bytes, from, to);
  const end = skipWhiteSpaceBack(bytes, start, to);
  if (end - start === 1 && isDigit(bytes[start] as number)) return (bytes[start] as number) - ZERO;
  if (isPlainString(bytes, start, end)) return bytes.toString('latin1', start + 1, end - 1);
  const value = parse(bytes, start, end);
  return typeof value === 'object' ? undefined : value;
}

/** Whether a string stands there that is written as it is: printable ASCII without escapes. */
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
    // Never passed on: V8's message quotes its input.
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
