import { CR, LF, TEXT_BYTES, TOKEN_BYTES } from './characters.ts';
import { FieldLines } from './field-lines.ts';
import { Fields } from './fields.ts';
import { HttpError } from './http-error.ts';

/** The states: where in the section the next byte is. */
const LINE_START = 0;
const LINE = 1;
const LINE_LF = 2;
const LAST_LF = 3;
const DONE = 4;

const LINE_END_BYTES = 2;
const NOTHING = Buffer.alloc(0);

/** Reads what follows the last chunk of a body: optional trailer fields and an empty line (RFC 9112 7.1.2). */
export class TrailerSection {
  readonly #maxBytes: number;
  #state = DONE;
  /** The part of the section that has arrived, unless it is only the empty line in one read. */
  #bytes = NOTHING;
  #sizeBytes = 0;
  #fields = new Fields();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the section is complete. */
  get isDone(): boolean {
    return this.#state === DONE;
  }

  /** The fields of a complete section; empty until then. */
  get fields(): Fields {
    return this.#fields;
  }

  /** Begins the section of the next body. */
  start(): void {
    this.#state = LINE_START;
    this.#sizeBytes = 0;
    // The previous fields belong to their reader.
    if (this.#fields.count > 0) this.#fields = new Fields();
  }

  /** Reads from `start`, and returns the offset after the section's bytes. Throws HttpError. */
  read(bytes: Buffer, start: number): number {
    let at = start;
    let state = this.#state;
    while (at < bytes.length && state !== DONE) state = toNext(state, bytes[at++] as number);
    this.#state = state;
    // The usual case: no fields, and the whole empty line in one read.
    if (state === DONE && this.#sizeBytes === 0 && at - start === LINE_END_BYTES) return at;
    this.#keep(bytes, start, at);
    if (state === DONE) this.#parse();
    return at;
  }

  /** Copies a piece of the section into a buffer that doubles as it grows. */
  #keep(bytes: Buffer, start: number, end: number): void {
    const sizeBytes = this.#sizeBytes + end - start;
    if (sizeBytes > this.#maxBytes) throw new HttpError('malformed');
    if (sizeBytes > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(sizeBytes, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#sizeBytes);
      this.#bytes = larger;
    }
    bytes.copy(this.#bytes, this.#sizeBytes, start, end);
    this.#sizeBytes = sizeBytes;
  }

  #parse(): void {
    const bytes = this.#bytes;
    const end = this.#sizeBytes - LINE_END_BYTES;
    this.#bytes = NOTHING;
    if (end === 0) return;
    const lines = new FieldLines();
    lines.read(bytes, 0, end, bytes.toString('latin1', 0, end), 0);
    // RFC 9110 6.5.1: fields for framing, routing or the connection must not be in a trailer section.
    const { hostCount, contentLength, transferEncoding, connection } = lines;
    if (hostCount > 0 || contentLength !== null || transferEncoding !== null || connection !== null) {
      throw new HttpError('malformed');
    }
    this.#fields = lines.fields;
  }
}

/** The state after one more byte. Lines are parsed when the section is complete. */
function toNext(state: number, byte: number): number {
  switch (state) {
    case LINE_START:
      if (byte === CR) return LAST_LF;
      if (TOKEN_BYTES[byte] === 1) return LINE;
      break;
    case LINE:
      if (byte === CR) return LINE_LF;
      if (TEXT_BYTES[byte] === 1) return LINE;
      break;
    default:
      if (byte === LF) return state === LAST_LF ? DONE : LINE_START;
  }
  throw new HttpError('malformed');
}
