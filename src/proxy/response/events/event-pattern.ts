import { type JsonLexer, JsonSyntaxError } from '#json';
import { BACKSLASH, QUOTE, viewOf } from '#json/bytes';
import { copyToKeep } from '#wire/upstream';
import type { EventScratch } from './event-scratch.ts';
import type { MemberSpan } from './stream-chunk.ts';

const LINE_FEED = 0x0a;
/** Longer events are not remembered. */
const MAX_PATTERN_BYTES = 2048;
const NOTHING = Buffer.alloc(0);

/**
 * What the events of a stream have in common. An engine repeats the same bytes in each event except for one string, the
 * text. What was found in one event then holds for the next, and only its string has to be read: 0.2 µs instead of 2.
 */
export class EventPattern {
  /** Whether the string of the last matched event is not empty. */
  hasText = false;

  readonly #scratch: EventScratch;
  /** The bytes before the string, including its opening quote, and after it, from its closing quote on. */
  #before = viewOf(NOTHING);
  #after = viewOf(NOTHING);

  constructor(scratch: EventScratch) {
    this.#scratch = scratch;
  }

  /**
   * Remembers the complete event `bytes[start, end)`, except the bytes of `text` between the quotes of a string. Events
   * that differ only in that string must say the same, apart from whether it is empty.
   */
  remember(bytes: Buffer, start: number, end: number, text: MemberSpan): void {
    const sizeBytes = end - start - (text.end - text.start);
    // A CR at the end may be half of a CRLF: then the event's own bytes do not show where it ends.
    const isUsable = sizeBytes <= MAX_PATTERN_BYTES && bytes[end - 1] === LINE_FEED;
    this.#before = viewOf(isUsable ? copyToKeep(bytes.subarray(start, text.start)) : NOTHING);
    this.#after = viewOf(isUsable ? copyToKeep(bytes.subarray(text.end, end)) : NOTHING);
  }

  /** The end of the event that begins at `start`, if it equals the remembered one except for its string; else -1. */
  match(bytes: Buffer, start: number): number {
    const before = this.#before;
    if (before.byteLength === 0) return -1;
    const memory = this.#scratch.memoryOf(bytes);
    const { byteOffset, length } = bytes;
    if (length - start < before.byteLength || !hasAt(memory, byteOffset + start, before)) return -1;
    const textStart = start + before.byteLength;
    const textEnd = endOfString(bytes, textStart, this.#scratch.lexer);
    const after = this.#after;
    if (textEnd === -1 || length - textEnd < after.byteLength) return -1;
    if (!hasAt(memory, byteOffset + textEnd, after)) return -1;
    this.hasText = textEnd > textStart;
    return textEnd + after.byteLength;
  }
}

/** Whether these bytes are at `start`. Compares four at a time: a third of the time of one by one. */
function hasAt(view: DataView, start: number, wanted: DataView): boolean {
  const count = wanted.byteLength;
  let i = 0;
  for (; i + 4 <= count; i += 4)
    if (view.getInt32(start + i, true) !== wanted.getInt32(i, true)) return false;
  for (; i < count; i++) if (view.getInt8(start + i) !== wanted.getInt8(i)) return false;
  return true;
}

/** Offset of the quote that closes the JSON string whose first byte is at `start`; -1 if invalid or incomplete. */
function endOfString(bytes: Buffer, start: number, lexer: JsonLexer): number {
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at;
    if (byte < 0x20) return -1;
    if (byte === BACKSLASH) return endOfEscapedString(bytes, at, lexer);
  }
  return -1;
}

function endOfEscapedString(bytes: Buffer, start: number, lexer: JsonLexer): number {
  lexer.reset(bytes, start, bytes.length);
  try {
    return lexer.scanString();
  } catch (error) {
    if (error instanceof JsonSyntaxError) return -1;
    throw error;
  }
}
