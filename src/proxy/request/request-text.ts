import { isAscii, isUtf8 } from 'node:buffer';
import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import { BACKSLASH, QUOTE } from '../../json/bytes.ts';
import { JsonCursor, type Span } from '../../json/cursor.ts';
import type { MemberAllowance } from '../../json/member-allowance.ts';
import {
  countCodePoints,
  isContinuation,
  type PrefixChain,
  type PrefixHasher,
} from '../record/prefix-hashes.ts';

/** What must be known of a request to find its text: `RequestFacts` has it. */
export interface RequestTextFacts {
  /** The whole model name; null: there is none, and no hashes. */
  readonly model: string | null;
  /** The value of `messages`, `prompt` or `input`, by the endpoint. */
  readonly text: Span | undefined;
  /** The value of `tools`. */
  readonly tools: Span | undefined;
}

/** What the record holds of a request's text. */
export interface RequestTextDescription {
  /** Unicode code points; absent if the text is not all strings, or there is none. */
  readonly promptChars?: number;
  /** 16 hex digits a block; absent when no block is complete. */
  readonly prefixHashes?: readonly string[];
}

const RECORD_SEPARATOR = Buffer.from('\u001e');
const LINE_FEED = Buffer.from('\n');
const NOTHING = Buffer.alloc(0);
const SHORT_TEXT_BYTES = 64;

/** Where a part that is no text may hold its payload: the first of these that is a string counts. */
const PAYLOADS: readonly (readonly [member: string, inner: string | undefined])[] = [
  ['image_url', 'url'],
  ['image_url', undefined],
  ['video_url', 'url'],
  ['audio_url', 'url'],
  ['input_audio', 'data'],
  ['file', 'file_data'],
  ['file', 'file_id'],
];

type Members = ReadonlyMap<string, Span>;

const NO_MEMBERS: Members = new Map();
const PART_MEMBERS: ReadonlySet<string> = new Set(['text', ...PAYLOADS.map(([member]) => member)]);

/**
 * Counts and hashes the text of a request as docs/record.md defines, in one go over a body that was found to be
 * JSON. It is slow for a large body, so call it after the request has gone upstream. Nothing of the text is kept.
 *
 * @param allowance asked as members and elements are gone over
 */
export function describeRequestText(
  body: Buffer,
  facts: RequestTextFacts,
  endpoint: RecordedEndpoint,
  hasher: PrefixHasher,
  allowance?: MemberAllowance,
): RequestTextDescription {
  const { model, text, tools } = facts;
  // Bytes that are no UTF-8 have no code points to be counted.
  if (text === undefined || !isUtf8(body)) return {};
  const chain = hasher.begin(model ?? '', tools && body.subarray(tools.start, tools.end));
  const reader = new TextReader(body, { hasher, chain, allowance });
  const isText = endpoint === '/v1/chat/completions' ? reader.readMessages(text) : reader.readStrings(text);
  const prefixHashes = chain.finish();
  if (!isText) return {};
  if (model === null) return { promptChars: reader.chars };
  return { promptChars: reader.chars, ...(prefixHashes.length > 0 && { prefixHashes }) };
}

interface TextReaderTools {
  readonly hasher: PrefixHasher;
  readonly chain: PrefixChain;
  readonly allowance: MemberAllowance | undefined;
}

class TextReader {
  chars = 0;
  readonly #body: Buffer;
  readonly #hasher: PrefixHasher;
  readonly #chain: PrefixChain;
  readonly #allowance: MemberAllowance | undefined;
  /** One cursor a level of nesting, used again and again: making one takes as long as reading a short text. */
  readonly #list: JsonCursor;
  #parts: JsonCursor | null = null;
  #part: JsonCursor | null = null;

  constructor(body: Buffer, { hasher, chain, allowance }: TextReaderTools) {
    this.#body = body;
    this.#hasher = hasher;
    this.#chain = chain;
    this.#allowance = allowance;
    this.#list = JsonCursor.ofChecked(body, allowance);
  }

  /** The text of a chat. False if the value is no array. */
  readMessages({ start, end }: Span): boolean {
    const cursor = this.#list.reset(this.#body, start, end);
    if (cursor.peek() !== 'array') return false;
    cursor.beginArray();
    while (cursor.nextElement()) this.#readMessage(cursor);
    return true;
  }

  /** The text of a completion or embedding: a string, or an array of them. False if anything is no string. */
  readStrings({ start, end }: Span): boolean {
    const cursor = this.#list.reset(this.#body, start, end);
    if (cursor.peek() === 'string') {
      this.#addString(cursor);
      return true;
    }
    if (cursor.peek() !== 'array') return false;
    cursor.beginArray();
    for (let index = 0; cursor.nextElement(); index++) {
      if (cursor.peek() !== 'string') return false;
      if (index > 0) this.#chain.add(RECORD_SEPARATOR);
      this.#addString(cursor);
    }
    return true;
  }

  /** A value that is no object is a message without members. */
  #readMessage(cursor: JsonCursor): void {
    let role: Span | undefined;
    let content: Span | undefined;
    let toolCalls: Span | undefined;
    if (cursor.peek() === 'object') {
      cursor.beginObject();
      while (cursor.nextKey()) {
        const key = cursor.key();
        cursor.skip();
        if (key === 'role') role = spanOf(cursor);
        else if (key === 'content') content = spanOf(cursor);
        else if (key === 'tool_calls') toolCalls = spanOf(cursor);
      }
    } else {
      cursor.skip();
    }
    this.#chain.add(RECORD_SEPARATOR);
    this.#chain.add(this.#stringAt(role) ?? NOTHING);
    this.#chain.add(LINE_FEED);
    this.#readContent(content);
    if (toolCalls !== undefined) this.#chain.add(this.#body.subarray(toolCalls.start, toolCalls.end));
    this.#chain.add(LINE_FEED);
  }

  #readContent(content: Span | undefined): void {
    if (content === undefined) return;
    const text = this.#stringAt(content);
    if (text !== undefined) {
      this.#addText(text);
      return;
    }
    this.#parts ??= JsonCursor.ofChecked(this.#body, this.#allowance);
    const cursor = this.#parts.reset(this.#body, content.start, content.end);
    if (cursor.peek() !== 'array') return;
    cursor.beginArray();
    while (cursor.nextElement()) {
      if (cursor.peek() === 'string') this.#addString(cursor);
      else this.#readPart(readMembers(cursor, PART_MEMBERS));
    }
  }

  /** A part is text if it is a string or has a `text` that is one; any other part is a medium. */
  #readPart(members: Members): void {
    const text = this.#stringAt(members.get('text'));
    if (text !== undefined) this.#addText(text);
    else if (!this.#chain.isFull) this.#chain.add(this.#hasher.mediaMark(this.#payloadOf(members)));
  }

  #payloadOf(members: Members): Buffer {
    for (const [member, inner] of PAYLOADS) {
      const span = members.get(member);
      if (span === undefined) continue;
      const payload = this.#stringAt(inner === undefined ? span : this.#memberAt(span, inner));
      if (payload !== undefined) return payload;
    }
    return NOTHING;
  }

  #addText(utf8: Buffer): void {
    if (utf8.length === 0) return;
    const isOneByteEach = isAscii(utf8);
    this.chars += isOneByteEach ? utf8.length : countCodePoints(utf8);
    this.#chain.add(utf8, isOneByteEach);
  }

  #memberAt(object: Span, key: string): Span | undefined {
    this.#part ??= JsonCursor.ofChecked(this.#body, this.#allowance);
    const cursor = this.#part.reset(this.#body, object.start, object.end);
    return readMembers(cursor, new Set([key])).get(key);
  }

  /** Adds the string that comes next. */
  #addString(cursor: JsonCursor): void {
    cursor.skip();
    const { valueStart, valueEnd } = cursor;
    if (this.#chain.isFull && this.#countPlain(valueStart + 1, valueEnd - 1)) return;
    this.#addText(utf8OfString(this.#body, { start: valueStart, end: valueEnd }));
  }

  /** Counts a short text in place: a body may hold millions, and a view of each takes longer. False if it is none. */
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

  /** The UTF-8 of the string that stands there, if it is one. */
  #stringAt(span: Span | undefined): Buffer | undefined {
    const isString = span !== undefined && this.#body[span.start] === QUOTE;
    return isString ? utf8OfString(this.#body, span) : undefined;
  }
}

/** The values of some members of the next object, of duplicates the last; none of a value that is no object. */
function readMembers(cursor: JsonCursor, wanted: ReadonlySet<string>): Members {
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return NO_MEMBERS;
  }
  const members = new Map<string, Span>();
  cursor.beginObject();
  while (cursor.nextKey()) {
    const key = cursor.key();
    cursor.skip();
    if (wanted.has(key)) members.set(key, spanOf(cursor));
  }
  return members;
}

/** Where the value stands that the cursor has just gone over. */
function spanOf({ valueStart, valueEnd }: JsonCursor): Span {
  return { start: valueStart, end: valueEnd };
}

/**
 * The UTF-8 of a string that a cursor has gone over before, given with its quotes: a view of `bytes` if it has no
 * escapes. Lone surrogates become U+FFFD.
 */
function utf8OfString(bytes: Buffer, { start, end }: Span): Buffer {
  const written = bytes.subarray(start + 1, end - 1);
  if (!written.includes(BACKSLASH)) return written;
  return Buffer.from(JSON.parse(bytes.toString('utf8', start, end)) as string);
}
