import { BACKSLASH, QUOTE, viewOf } from '../../json/bytes.ts';
import { JsonLexer, JsonSyntaxError } from '../../json/lexer.ts';
import type { MemberSpan } from './stream-chunk.ts';

const LINE_FEED = 0x0a;
/** Longer events are read each by itself. */
const MAX_PATTERN_BYTES = 2048;
const NOTHING = Buffer.alloc(0);

const lexer = new JsonLexer(NOTHING, 0, 0);

/** The read that is being looked at: it may hold many events. */
let readBytes: Buffer = NOTHING;
let readView = viewOf(NOTHING);

/**
 * What the events of a stream have in common: an engine repeats the same bytes in each, but for one string, the text.
 * What was found in one event then holds for the next, and only its string has to be looked at: 0.2 µs instead of 2.
 */
export class EventPattern {
  /** Whether the string of the event that was matched last is not empty. */
  hasText = false;

  /** The bytes before the string, its opening quote included, and after it, from its closing quote on. */
  #before = viewOf(NOTHING);
  #after = viewOf(NOTHING);

  /**
   * Remembers the complete event `bytes[start, end)`. All that anybody wants to know of it must follow from its bytes
   * outside of `text`, what stands between the quotes of a string; but for whether that is empty.
   */
  remember(bytes: Buffer, start: number, end: number, text: MemberSpan): void {
    const sizeBytes = end - start - (text.end - text.start);
    // A CR at the end may be half of a line end: where the event ends does not follow from its own bytes.
    const isUsable = sizeBytes <= MAX_PATTERN_BYTES && bytes[end - 1] === LINE_FEED;
    this.#before = viewOf(isUsable ? Buffer.from(bytes.subarray(start, text.start)) : NOTHING);
    this.#after = viewOf(isUsable ? Buffer.from(bytes.subarray(text.end, end)) : NOTHING);
  }

  /** The end of the event that begins at `start`, if it is as the remembered one but for its string; else -1. */
  match(bytes: Buffer, start: number): number {
    const before = this.#before;
    if (before.byteLength === 0) return -1;
    if (bytes !== readBytes) {
      readBytes = bytes;
      readView = viewOf(bytes);
    }
    if (!hasAt(readView, start, before)) return -1;
    const textStart = start + before.byteLength;
    const textEnd = endOfString(bytes, textStart);
    if (textEnd === -1 || !hasAt(readView, textEnd, this.#after)) return -1;
    this.hasText = textEnd > textStart;
    return textEnd + this.#after.byteLength;
  }
}

/** Whether these bytes stand there: four at a time, a third of what comparing them one by one takes. */
function hasAt(view: DataView, start: number, wanted: DataView): boolean {
  const count = wanted.byteLength;
  if (view.byteLength - start < count) return false;
  let i = 0;
  for (; i + 4 <= count; i += 4)
    if (view.getInt32(start + i, true) !== wanted.getInt32(i, true)) return false;
  for (; i < count; i++) if (view.getInt8(start + i) !== wanted.getInt8(i)) return false;
  return true;
}

/** Offset of the quote that closes the JSON string whose first byte is at `start`; -1 if it is none, or not whole. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at;
    if (byte < 0x20) return -1;
    if (byte === BACKSLASH) return endOfEscapedString(bytes, at);
  }
  return -1;
}

function endOfEscapedString(bytes: Buffer, start: number): number {
  lexer.reset(bytes, start, bytes.length);
  try {
    return lexer.scanString();
  } catch (error) {
    if (error instanceof JsonSyntaxError) return -1;
    throw error;
  }
}
