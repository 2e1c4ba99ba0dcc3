const LF = 10;
const CR = 13;
const DATA_FIELD = Buffer.from('data:');
const BYTE_ORDER_MARK: ReadonlySet<number> = new Set([0xef, 0xbb, 0xbf]);

/** Receives what the lines of an event stream hold. Offsets are into the bytes of the current `push`. */
export interface EventLinesSink {
  /** A part of a data line's value, or all of it. The space before a value may be part of it. */
  onData(bytes: Buffer, start: number, end: number): void;
  /** A data line ends before this offset. */
  onLineEnd(at: number): void;
  onEventEnd(): void;
}

/**
 * Finds the data in a text/event-stream as it passes, of events of any size (WHATWG HTML 9.2.6). Lines end in LF, CRLF
 * or CR, and the stream may be cut anywhere.
 */
export class EventLines {
  readonly #sink: EventLinesSink;
  /** How many bytes of the name `data:` the line has; `data`: the rest of it is data; `other`: it is not. */
  #line: number | 'data' | 'other' = 0;
  #isAfterCr = false;

  constructor(sink: EventLinesSink) {
    this.#sink = sink;
  }

  /** Takes the next bytes of the stream. */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at++) {
      if (typeof this.#line === 'string') {
        const end = endOfLine(bytes, at);
        if (this.#line === 'data' && end > at) this.#sink.onData(bytes, at, end);
        at = end;
      }
      if (at < bytes.length) this.#take(bytes[at] as number, at);
    }
  }

  /** Takes a byte of a field's name, or the end of a line. */
  #take(byte: number, at: number): void {
    const isSecondHalf = byte === LF && this.#isAfterCr;
    this.#isAfterCr = byte === CR;
    if (isSecondHalf) return;
    if (byte === LF || byte === CR) {
      if (this.#line === 0) this.#sink.onEventEnd();
      if (this.#line === 'data') this.#sink.onLineEnd(at);
      this.#line = 0;
    } else if (typeof this.#line === 'number' && byte === DATA_FIELD[this.#line]) {
      this.#line = this.#line + 1 === DATA_FIELD.length ? 'data' : this.#line + 1;
    } else if (this.#line !== 0 || !BYTE_ORDER_MARK.has(byte)) {
      this.#line = 'other';
    }
  }
}

function endOfLine(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at++;
  return at;
}
