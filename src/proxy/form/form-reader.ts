import { isAscii, isUtf8 } from 'node:buffer';
import type { Span } from '#json';
import { lookalikeOf } from '../request/inspection/member-names.ts';
import { type PartHead, parsePartHead } from './part-head.ts';

/** The bytes are not a form that every parser reads in the same way. The message says why, and quotes nothing. */
export class FormSyntaxError extends Error {
  override readonly name = 'FormSyntaxError';
}

/** For the head of one part: field names, a file name, a media type. */
const MAX_HEAD_BYTES = 8 * 1024;
/** For all heads together: to read one that comes byte by byte takes time that grows with its square. */
const MAX_ALL_HEADS_BYTES = 64 * 1024;
/** For the name of a model. No replica has a longer one. */
const MAX_MODEL_BYTES = 4 * 1024;

const CR_LF = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');
const LAST = Buffer.from('--');

/** The fields that say something here, beside the content of files. */
const READ_FIELDS = ['model', 'prompt', '_charset_'];

/** What the next bytes are. */
type State = 'first_delimiter' | 'after_delimiter' | 'head' | 'content' | 'last_line_end' | 'end';

/**
 * Reads a body of `multipart/form-data` (RFC 7578, RFC 2046 5.1) as it passes, and changes nothing: its model, and how
 * many characters its prompt has. It keeps the name of the model and at most one head of a part.
 *
 * It is stricter than the RFCs where engines are, or where they read differently: no bytes before the first delimiter,
 * none between a delimiter and its line end, and after the last one nothing but its line end. cpp-httplib 0.43 reads
 * what follows there as one more part, if it comes in a read of its own.
 */
export class FormReader {
  readonly #firstDelimiter: Buffer;
  readonly #delimiter: Buffer;
  #state: State = 'first_delimiter';
  /** Begins with the bytes that have come but cannot be read yet: less than a head and a delimiter. */
  #store: Buffer = Buffer.alloc(0);
  #pendingBytes = 0;
  /** Where the pending bytes begin in the body. */
  #position = 0;
  #headsBytes = 0;
  #part: 'model' | 'prompt' | 'other' = 'other';
  #isAsciiPart = false;
  #model: string | null = null;
  readonly #modelBytes: Buffer[] = [];
  #modelSize = 0;
  #hasModel = false;
  #modelStart = 0;
  #modelEnd = 0;
  #promptChars: number | undefined;
  #lookalike: string | null = null;

  constructor(boundary: string) {
    this.#firstDelimiter = Buffer.from(`--${boundary}`, 'latin1');
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  }

  /** The value of the part `model`; null until the whole part has come, or if it is empty or too long. */
  get model(): string | null {
    return this.#model;
  }

  /** Where the bytes of `model` stand in the body. Ask when there is one. */
  get modelSpan(): Span {
    return { start: this.#modelStart, end: this.#modelEnd };
  }

  /** Unicode code points of the parts `prompt` so far; undefined without such a part. */
  get promptChars(): number | undefined {
    return this.#promptChars;
  }

  /**
   * A field of those that are read here, if another one so far differs from it only in case: engines that do not tell
   * upper case from lower case could read that one. Null: there is none.
   */
  get lookalike(): string | null {
    return this.#lookalike;
  }

  /** Takes the next bytes. Keeps no reference to them. Throws a FormSyntaxError. */
  push(chunk: Buffer): void {
    const bytes = this.#pendingBytes === 0 ? chunk : this.#append(chunk);
    let offset = 0;
    for (;;) {
      const next = this.#step(bytes, offset);
      if (next === null) break;
      offset = next;
    }
    if (this.#state === 'content') offset = this.#readContent(bytes, offset);
    this.#position += offset;
    this.#keep(bytes.subarray(offset));
  }

  /** The body is complete. Throws a FormSyntaxError if the form is not. */
  end(): void {
    if (this.#state === 'end') return;
    if (this.#state !== 'last_line_end' || this.#pendingBytes > 0) {
      throw new FormSyntaxError('the form has no end');
    }
  }

  /** The pending bytes and those of the chunk. */
  #append(chunk: Buffer): Buffer {
    const sizeBytes = this.#pendingBytes + chunk.length;
    this.#reserve(sizeBytes);
    chunk.copy(this.#store, this.#pendingBytes);
    return this.#store.subarray(0, sizeBytes);
  }

  /** Keeps the bytes, which may be a part of the store. */
  #keep(rest: Buffer): void {
    this.#reserve(rest.length);
    rest.copy(this.#store);
    this.#pendingBytes = rest.length;
  }

  /** Makes room, so that a head that comes byte by byte is not copied each time. */
  #reserve(sizeBytes: number): void {
    if (this.#store.length >= sizeBytes) return;
    const larger = Buffer.allocUnsafeSlow(2 * sizeBytes);
    this.#store.copy(larger, 0, 0, this.#pendingBytes);
    this.#store = larger;
  }

  /** Reads from the offset up to the next change of state. Returns the offset after it; null: more bytes are needed. */
  #step(bytes: Buffer, offset: number): number | null {
    switch (this.#state) {
      case 'first_delimiter':
        return this.#readFirstDelimiter(bytes);
      case 'after_delimiter':
        return this.#readAfterDelimiter(bytes, offset);
      case 'head':
        return this.#readHead(bytes, offset);
      case 'content': {
        const end = bytes.indexOf(this.#delimiter, offset);
        if (end === -1) return null;
        this.#takeContent(bytes.subarray(offset, end));
        this.#endPart(this.#position + end);
        this.#state = 'after_delimiter';
        return end + this.#delimiter.length;
      }
      case 'last_line_end':
        return this.#readLastLineEnd(bytes, offset);
      case 'end':
        if (offset < bytes.length) throw new FormSyntaxError('the form goes on after its end');
        return null;
    }
  }

  #readFirstDelimiter(bytes: Buffer): number | null {
    const expected = this.#firstDelimiter;
    const comparedBytes = Math.min(bytes.length, expected.length);
    if (bytes.compare(expected, 0, comparedBytes, 0, comparedBytes) !== 0) {
      throw new FormSyntaxError('the form does not begin with its boundary');
    }
    if (comparedBytes < expected.length) return null;
    this.#state = 'after_delimiter';
    return expected.length;
  }

  #readAfterDelimiter(bytes: Buffer, offset: number): number | null {
    if (bytes.length - offset < CR_LF.length) return null;
    const end = offset + CR_LF.length;
    // Parsers that look for a first part would find one after the end of a form without parts.
    if (this.#headsBytes > 0 && bytes.compare(LAST, 0, LAST.length, offset, end) === 0) {
      this.#state = 'last_line_end';
    } else if (bytes.compare(CR_LF, 0, CR_LF.length, offset, end) === 0) {
      this.#state = 'head';
    } else {
      throw new FormSyntaxError('a boundary is not a line of its own');
    }
    return end;
  }

  #readLastLineEnd(bytes: Buffer, offset: number): number | null {
    const comparedBytes = Math.min(bytes.length - offset, CR_LF.length);
    if (bytes.compare(CR_LF, 0, comparedBytes, offset, offset + comparedBytes) !== 0) {
      throw new FormSyntaxError('the form goes on after its end');
    }
    if (comparedBytes < CR_LF.length) return null;
    this.#state = 'end';
    return offset + CR_LF.length;
  }

  #readHead(bytes: Buffer, offset: number): number | null {
    const end = bytes.indexOf(HEAD_END, offset);
    const sizeBytes = (end === -1 ? bytes.length : end) - offset;
    if (sizeBytes > MAX_HEAD_BYTES || this.#headsBytes + sizeBytes > MAX_ALL_HEADS_BYTES) {
      throw new FormSyntaxError('the heads of the parts are too long');
    }
    if (end === -1) return null;
    const head = parsePartHead(bytes.toString('latin1', offset, end));
    if (head === null) throw new FormSyntaxError('the head of a part is malformed or ambiguous');
    this.#headsBytes += sizeBytes;
    const contentStart = end + HEAD_END.length;
    this.#beginPart(head, this.#position + contentStart);
    this.#state = 'content';
    return contentStart;
  }

  #beginPart({ name, isFile, isAscii }: PartHead, contentStart: number): void {
    // It would change the charset of the others (RFC 7578 4.6).
    if (name === '_charset_') throw new FormSyntaxError('the form names a charset');
    this.#isAsciiPart = isAscii;
    this.#part = name === 'model' || name === 'prompt' ? name : 'other';
    // Names are in UTF-8 (RFC 7578 5.1), whatever the head was read in.
    if (this.#part === 'other')
      this.#lookalike ??= lookalikeOf(Buffer.from(name, 'latin1').toString(), READ_FIELDS);
    if (name === 'prompt') this.#promptChars ??= 0;
    if (name !== 'model') return;
    // Engines differ in which one they take, the first or the last.
    if (this.#hasModel) throw new FormSyntaxError('the form has two models');
    if (isFile) throw new FormSyntaxError('the model is a file');
    this.#hasModel = true;
    this.#modelStart = contentStart;
  }

  /** Reads all but the bytes that may begin a delimiter. Returns the offset of those. */
  #readContent(bytes: Buffer, offset: number): number {
    const end = Math.max(offset, bytes.length - this.#delimiter.length + 1);
    this.#takeContent(bytes.subarray(offset, end));
    return end;
  }

  #takeContent(bytes: Buffer): void {
    if (this.#part === 'prompt') {
      this.#promptChars = (this.#promptChars ?? 0) + countCodePoints(bytes);
    } else if (this.#part === 'model') {
      this.#modelSize += bytes.length;
      if (this.#modelSize <= MAX_MODEL_BYTES) this.#modelBytes.push(Buffer.from(bytes));
    }
  }

  #endPart(contentEnd: number): void {
    if (this.#part !== 'model') return;
    this.#modelEnd = contentEnd;
    const bytes = Buffer.concat(this.#modelBytes.splice(0));
    if (this.#modelSize === 0 || this.#modelSize > MAX_MODEL_BYTES) return;
    // Starlette reads bytes that are not UTF-8 as latin-1.
    if (this.#isAsciiPart ? !isAscii(bytes) : !isUtf8(bytes)) {
      throw new FormSyntaxError('the model is not in UTF-8');
    }
    this.#model = bytes.toString('utf8');
  }
}

/** Code points of UTF-8: all bytes but those that continue one. */
function countCodePoints(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) count++;
  return count;
}
