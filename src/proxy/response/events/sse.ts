import { copyBytes, GrowingBytes } from '#json/bytes';

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const NOTHING = Buffer.alloc(0);

/** Receives what a splitter finds, in stream order: `bytes[start, end)`. The bytes stay good: they are never overwritten. */
export interface SseSink {
  /** One complete event with its blank line. */
  onEvent(bytes: Buffer, start: number, end: number): void;
  /** A part of an event that exceeds the limit. Such an event is not read. */
  onOverlong(bytes: Buffer, start: number, end: number): void;
  /** Takes the event that begins at `start` if it knows where the event ends. Returns the end, else `start`. */
  takeKnown(bytes: Buffer, start: number): number;
}

/**
 * Splits a text/event-stream into events, in bytes (WHATWG HTML 9.2.6). Lines end in LF, CRLF or CR, and reads may be
 * cut anywhere. Every byte of the stream goes to the sink once, or is `pending`.
 *
 * Each byte is read once and copied at most a few times, however small the reads are.
 */
export class SseSplitter {
  readonly #maxEventBytes: number;
  readonly #pending = new GrowingBytes();
  /** Whether the current line has no byte yet. */
  #isAtLineStart = true;
  #endedInCr = false;
  #isSkipping = false;
  /** Nothing is pending, and the last byte was not a CR whose LF may follow. */
  #isBetweenEvents = true;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** The bytes so far of an event that has not ended. */
  get pending(): Buffer {
    return this.#pending.bytes;
  }

  /** How many bytes of an event that has not ended have come. */
  get pendingBytes(): number {
    return this.#pending.length;
  }

  /** Whether the stream is in the middle of an event. */
  get isMidEvent(): boolean {
    return this.#isSkipping || this.#pending.length > 0;
  }

  /** Whether the current event exceeds the limit and goes to the sink in parts, unread. */
  get isSkipping(): boolean {
    return this.#isSkipping;
  }

  /** Takes the bytes of one read. */
  push(bytes: Buffer, sink: SseSink): void {
    const known = this.#isBetweenEvents ? takeAllKnown(bytes, 0, sink) : 0;
    // In most reads all events are like those before.
    if (known < bytes.length) this.#split(bytes, known, sink);
  }

  #split(bytes: Buffer, from: number, sink: SseSink): void {
    let eventStart = from;
    let position = from;
    // Negative: the line began in an earlier read, so a line end at 0 is not a blank line.
    let lineStart = this.#isAtLineStart ? from : -1;
    if (this.#endedInCr) {
      this.#endedInCr = false;
      if (bytes[0] === LF) {
        position = lineStart = 1;
        // The late half of a CRLF belongs to the line before it, and therefore to that line's event.
        if (!this.isMidEvent) {
          sink.onEvent(bytes, 0, 1);
          eventStart = 1;
        }
      }
      if (!this.isMidEvent) position = lineStart = eventStart = takeAllKnown(bytes, eventStart, sink);
    }
    while (position < bytes.length) {
      const byte = bytes[position] as number;
      if (byte !== LF && byte !== CR) {
        position++;
        continue;
      }
      const isBlank = position === lineStart;
      position++;
      if (byte === CR) {
        if (position === bytes.length) this.#endedInCr = true;
        else if (bytes[position] === LF) position++;
      }
      lineStart = position;
      if (!isBlank) continue;
      this.#endEvent(bytes, eventStart, position, sink);
      position = lineStart = eventStart = takeAllKnown(bytes, position, sink);
    }
    this.#isAtLineStart = lineStart === bytes.length;
    this.#keep(bytes, eventStart, sink);
    this.#isBetweenEvents = !this.isMidEvent && !this.#endedInCr;
  }

  /** Gives the sink a last event that the stream ended without a blank line. */
  end(sink: SseSink): void {
    const last = this.#pending.take(NOTHING, 0, 0);
    this.#isSkipping = false;
    if (last.length > 0) sink.onEvent(last, 0, last.length);
  }

  #endEvent(bytes: Buffer, start: number, end: number, sink: SseSink): void {
    if (this.#isSkipping) {
      this.#isSkipping = false;
      sink.onOverlong(bytes, start, end);
    } else if (this.#pending.length === 0) {
      sink.onEvent(bytes, start, end);
    } else {
      const whole = this.#pending.take(bytes, start, end);
      sink.onEvent(whole, 0, whole.length);
    }
  }

  #keep(bytes: Buffer, eventStart: number, sink: SseSink): void {
    const isOverlong = this.#pending.length + bytes.length - eventStart > this.#maxEventBytes;
    if (!this.#isSkipping && !isOverlong) {
      // The first part is not copied: most events are complete with the next read.
      if (this.#pending.length > 0) this.#pending.add(bytes, eventStart, bytes.length);
      else if (eventStart < bytes.length) this.#pending.hold(bytes.subarray(eventStart));
      return;
    }
    this.#isSkipping = true;
    const begun = this.#pending.take(NOTHING, 0, 0);
    if (begun.length > 0) sink.onOverlong(begun, 0, begun.length);
    sink.onOverlong(bytes, eventStart, bytes.length);
  }
}

/** Lets the sink take events as long as it knows them. Returns where the last one ends. */
function takeAllKnown(bytes: Buffer, start: number, sink: SseSink): number {
  let at = start;
  while (at < bytes.length) {
    const end = sink.takeKnown(bytes, at);
    if (end === at) break;
    at = end;
  }
  return at;
}

/**
 * The data of the event that is being read: `bytes[start, end)`. Several data lines are joined by LF. It is good until
 * the next event is read.
 */
export interface CurrentEventData {
  bytes: Buffer;
  start: number;
  end: number;
  /** Whether `bytes` are the event's own, so that the event can be edited by these offsets. */
  isInPlace: boolean;
  /** An `event: error` line, or an `error:` line, as llama.cpp sent errors before 2025-09 (ggml-org/llama.cpp#16104). */
  hasErrorLine: boolean;
}

/** Creates data for `readEventData` to fill, event after event. */
export function createEventData(): CurrentEventData {
  return { bytes: NOTHING, start: 0, end: 0, isInPlace: true, hasErrorLine: false };
}

/** Finds the data of the event `bytes[start, end)` and writes it to `into`. Returns whether there is any. */
export function readEventData(bytes: Buffer, start: number, end: number, into: CurrentEventData): boolean {
  let lineCount = 0;
  let joined: Buffer | null = null;
  let joinedBytes = 0;
  into.hasErrorLine = false;
  for (let lineStart = skipByteOrderMark(bytes, start); lineStart < end; ) {
    const lineEnd = endOfLine(bytes, lineStart, end);
    if (isField(bytes, lineStart, lineEnd, 'data')) {
      const valueStart = startOfValue(bytes, lineStart + 4, lineEnd);
      if (lineCount++ === 0) {
        into.start = valueStart;
        into.end = lineEnd;
      } else {
        if (joined === null) {
          // The values fit where their lines did: each line loses at least the word `data`.
          joined = Buffer.allocUnsafe(end - start);
          joinedBytes = copyBytes(bytes, into.start, into.end, joined, 0);
        }
        joined[joinedBytes] = LF;
        joinedBytes = copyBytes(bytes, valueStart, lineEnd, joined, joinedBytes + 1);
      }
    } else if (isField(bytes, lineStart, lineEnd, 'event')) {
      const valueStart = startOfValue(bytes, lineStart + 5, lineEnd);
      if (isField(bytes, valueStart, lineEnd, 'error') && lineEnd - valueStart === 5)
        into.hasErrorLine = true;
    } else if (isField(bytes, lineStart, lineEnd, 'error')) {
      into.hasErrorLine = true;
    }
    // The LF of a CRLF then is an empty line, which has no field.
    lineStart = lineEnd + 1;
  }
  into.isInPlace = joined === null;
  into.bytes = joined ?? bytes;
  if (joined !== null) {
    into.start = 0;
    into.end = joinedBytes;
  }
  return lineCount > 0;
}

function skipByteOrderMark(bytes: Buffer, start: number): number {
  const isMark = bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
  return isMark ? start + 3 : start;
}

function endOfLine(bytes: Buffer, start: number, end: number): number {
  let position = start;
  while (position < end && bytes[position] !== LF && bytes[position] !== CR) position++;
  return position;
}

function isField(bytes: Buffer, start: number, end: number, name: 'data' | 'event' | 'error'): boolean {
  if (end - start < name.length) return false;
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name.charCodeAt(i)) return false;
  return end - start === name.length || bytes[start + name.length] === COLON;
}

function startOfValue(bytes: Buffer, colon: number, end: number): number {
  if (colon >= end) return end;
  return bytes[colon + 1] === SPACE && colon + 1 < end ? colon + 2 : colon + 1;
}
