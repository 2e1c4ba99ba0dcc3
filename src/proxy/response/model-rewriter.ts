import { ModelFinder } from './model-finder.ts';
import { OutgoingPieces } from './outgoing-pieces.ts';

/**
 * Replaces the name of the model in an answer with the one that the client used. All other bytes pass at once, wherever
 * the answer is cut. The new name goes out when the first byte of the replica's comes.
 */
export class ModelRewriter {
  readonly #name: Buffer;
  readonly #finder = new ModelFinder();
  /** Null: the answer is JSON, not a stream of events. */
  readonly #lines: EventLines | null;
  readonly #out = new OutgoingPieces();
  /** From where on the bytes of the current piece have not gone out. */
  #from = 0;

  /** @param name what the client called the model */
  constructor(name: string, isEventStream: boolean) {
    this.#name = Buffer.from(JSON.stringify(name));
    this.#lines = isEventStream
      ? new EventLines({
          onData: (bytes, start, end) => this.#readJson(bytes, start, end),
          onLineEnd: (at) => this.#endLine(at),
          onEventEnd: () => this.#finder.reset(),
        })
      : null;
  }

  /** Takes the next pieces of the answer. Returns what goes out for them. */
  rewrite(pieces: readonly Buffer[]): readonly Buffer[] {
    for (const piece of pieces) {
      this.#from = 0;
      if (this.#lines === null) this.#readJson(piece, 0, piece.length);
      else this.#lines.push(piece);
      if (!this.#finder.isInName) this.#out.add(piece, this.#from);
    }
    return this.#out.take();
  }

  #readJson(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const wasInName = this.#finder.isInName;
      at = this.#finder.read(bytes, at, end);
      if (wasInName && !this.#finder.isInName) this.#from = at;
      if (wasInName || !this.#finder.isInName) continue;
      this.#out.add(bytes, this.#from, at - 1);
      this.#out.add(this.#name);
    }
  }

  /** A name that its line cuts off is no JSON: what follows passes. */
  #endLine(at: number): void {
    if (!this.#finder.isInName) return;
    this.#finder.reset();
    this.#from = at;
  }
}

const LF = 10;
const CR = 13;
const DATA_FIELD = Buffer.from('data:');
const BYTE_ORDER_MARK: ReadonlySet<number> = new Set([0xef, 0xbb, 0xbf]);

/** Receives what the lines of an event stream hold. Offsets are into the bytes of the current `push`. */
interface EventLinesSink {
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
