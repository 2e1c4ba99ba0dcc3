import { ChunkSizeLine } from './chunk-size-line.ts';
import type { Fields } from './fields.ts';
import type { Framing } from './head.ts';
import { HttpError } from './http-error.ts';
import { TrailerSection } from './trailer-section.ts';

/** Receives the body of a message as it is read. */
export interface BodySink {
  /** `view`: a view into the bytes passed to `read`, valid as long as they are. */
  onData(view: Buffer): void;
}

/**
 * The states: what comes next.
 * ```
 *  DATA_OF_LENGTH ── length is 0 ──► DONE          UNTIL_CLOSE ── end() ──► DONE
 *
 *  SIZE_LINE ◄───► DATA
 *      └─ size is 0 ──► TRAILERS ──► DONE
 * ```
 */
const DONE = 0;
const DATA_OF_LENGTH = 1;
const UNTIL_CLOSE = 2;
const SIZE_LINE = 3;
const DATA = 4;
const TRAILERS = 5;

const DEFAULT_MAX_LINE_BYTES = 4096;
const DEFAULT_MAX_TRAILER_BYTES = 16 * 1024;

/**
 * Reads the bodies of successive messages from reads that may be split anywhere (RFC 9112 6, 7). It copies only trailer
 * fields.
 */
export class BodyReader {
  readonly #sizeLine: ChunkSizeLine;
  readonly #trailers: TrailerSection;
  #state = DONE;
  /** How many bytes of the body or the current chunk have not arrived. */
  #leftBytes = 0;
  /** Where the body data of the current read is, after its chunks have been joined. */
  #joinedStart = -1;
  #joinedEnd = -1;

  /** `maxLineBytes` limits a chunk-size line with its extensions, `maxTrailerBytes` the trailer section. */
  constructor(limits: { readonly maxLineBytes?: number; readonly maxTrailerBytes?: number } = {}) {
    this.#sizeLine = new ChunkSizeLine(limits.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES);
    this.#trailers = new TrailerSection(limits.maxTrailerBytes ?? DEFAULT_MAX_TRAILER_BYTES);
  }

  /** Whether the body is complete. */
  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** The trailer fields of a complete chunked body; empty otherwise. */
  get trailers(): Fields {
    return this.#trailers.fields;
  }

  /** Begins the body of the next message. A message without a body, or with length 0, is done at once. */
  start(framing: Framing): void {
    this.#trailers.start();
    switch (framing.kind) {
      case 'none':
        this.#state = DONE;
        break;
      case 'length':
        this.#state = framing.bytes === 0 ? DONE : DATA_OF_LENGTH;
        this.#leftBytes = framing.bytes;
        break;
      case 'chunked':
        this.#state = SIZE_LINE;
        this.#sizeLine.start();
        break;
      case 'until_close':
        this.#state = UNTIL_CLOSE;
        break;
    }
  }

  /**
   * Reads from `start`, passes the body data to the sink in one view, and returns the offset of the first byte after
   * the body. Chunks are joined in place in `bytes`, over their framing, so that a reader of events gets 16 chunks in
   * one piece, not in 16. Throws HttpError('malformed'); the reader cannot be used again until the next `start`.
   */
  read(bytes: Buffer, start: number, sink: BodySink): number {
    this.#joinedStart = this.#joinedEnd = -1;
    try {
      return this.#read(bytes, start);
    } finally {
      // Data before an error is part of the body too.
      if (this.#joinedStart !== -1) sink.onData(viewOf(bytes, this.#joinedStart, this.#joinedEnd));
    }
  }

  #read(bytes: Buffer, start: number): number {
    let at = start;
    while (at < bytes.length) {
      switch (this.#state) {
        case DONE:
          return at;
        case UNTIL_CLOSE:
          this.#join(bytes, at, bytes.length);
          return bytes.length;
        case DATA_OF_LENGTH:
        case DATA:
          at = this.#readData(bytes, at);
          break;
        case TRAILERS:
          at = this.#trailers.read(bytes, at);
          if (this.#trailers.isDone) this.#state = DONE;
          break;
        default:
          at = this.#sizeLine.read(bytes, at);
          if (this.#sizeLine.isDone) this.#startChunk(this.#sizeLine.sizeBytes);
      }
    }
    return at;
  }

  /**
   * The peer has closed its side, which completes a body without a length. Throws HttpError('closed_early') if any
   * other body is incomplete.
   */
  end(): void {
    if (this.#state === UNTIL_CLOSE) this.#state = DONE;
    if (this.#state !== DONE) throw new HttpError('closed_early');
  }

  #startChunk(sizeBytes: number): void {
    this.#leftBytes = sizeBytes;
    this.#state = sizeBytes === 0 ? TRAILERS : DATA;
  }

  #readData(bytes: Buffer, start: number): number {
    const end = Math.min(bytes.length, start + this.#leftBytes);
    this.#leftBytes -= end - start;
    if (this.#leftBytes === 0) this.#state = this.#state === DATA ? SIZE_LINE : DONE;
    this.#join(bytes, start, end);
    return end;
  }

  /** Appends a piece of the body to the pieces before it. */
  #join(bytes: Buffer, start: number, end: number): void {
    if (this.#joinedStart === -1) {
      this.#joinedStart = start;
      this.#joinedEnd = end;
    } else {
      bytes.copyWithin(this.#joinedEnd, start, end);
      this.#joinedEnd += end - start;
    }
  }
}

function viewOf(bytes: Buffer, start: number, end: number): Buffer {
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}
