import { WIDE_STRINGS_BINARY } from './wide-strings-binary.ts';

/** Shorter texts are read faster byte by byte: these have to be copied first. */
export const MIN_WIDE_BYTES = 512;

/** How much is copied at a time: the processor's first cache holds it. */
const WINDOW_BYTES = 16 * 1024;
/** A vector may be read or written so far beyond its end. */
const SPARE_BYTES = 16;
/** Where wide-strings.as leaves its second result, as a number of 32 bits. */
const RESULT = 0;
const INPUT = 64;
const OUTPUT = INPUT + WINDOW_BYTES + SPARE_BYTES;
/** The longest escape, of a code point beyond U+FFFF, is two of six bytes. No window is shorter, or nothing is read. */
const LONGEST_ESCAPE_BYTES = 12;

/** What is used of WebAssembly, which TypeScript knows in browsers only. It is missing with V8's --jitless. */
declare const WebAssembly: {
  readonly Module: new (binary: Buffer) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/** The functions of wide-strings.as, which says what they do. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  skip(from: number, to: number): number;
  decode(from: number, to: number, output: number, isLast: boolean): number;
  advance(from: number, to: number, count: number): number;
}

/** Reads sixteen bytes at a time. Copies them into memory of its own, and clears it before it returns. */
export class WideStrings {
  /** Whether the last {@link skip} stepped over an escape. */
  hasEscapes = false;
  /** How many code points the last {@link advance} did not find. */
  left = 0;
  readonly #exports: Exports;
  readonly #memory: Buffer;
  readonly #results: Uint32Array;

  constructor(exports: Exports) {
    this.#exports = exports;
    this.#memory = Buffer.from(exports.memory.buffer);
    this.#results = new Uint32Array(exports.memory.buffer);
  }

  /**
   * Steps over plain bytes and valid escapes of a string, from `from` on. Returns the offset of the first byte that it
   * leaves to the caller: a quote, a control character, or a backslash that may begin no escape before `end`. Returns
   * `end` if there is none.
   */
  skip(bytes: Buffer, from: number, end: number): number {
    let at = from;
    this.hasEscapes = false;
    // Most strings end soon.
    for (let windowBytes = MIN_WIDE_BYTES; at < end; windowBytes = Math.min(2 * windowBytes, WINDOW_BYTES)) {
      const to = Math.min(at + windowBytes, end);
      bytes.copy(this.#memory, INPUT, at, to);
      const stop = this.#exports.skip(INPUT, INPUT + to - at) - INPUT;
      this.#clear(INPUT, INPUT + to - at);
      if (this.#results[RESULT] === 1) this.hasEscapes = true;
      at += stop;
      // Only an escape that the window cuts is less than its length before the end.
      if (at < to && (to === end || to - at >= LONGEST_ESCAPE_BYTES)) return at;
      if (stop === 0) return at;
    }
    return at;
  }

  /** Decodes the contents of a string of valid JSON and UTF-8. Lone surrogates become U+FFFD. */
  decode(bytes: Buffer, start: number, end: number): Buffer {
    // No escape is shorter than what it stands for.
    const decoded = Buffer.allocUnsafeSlow(end - start);
    let length = 0;
    for (let from = start; from < end; ) {
      const to = Math.min(from + WINDOW_BYTES, end);
      bytes.copy(this.#memory, INPUT, from, to);
      const outputEnd = this.#exports.decode(INPUT, INPUT + to - from, OUTPUT, to === end);
      length += this.#memory.copy(decoded, length, OUTPUT, outputEnd);
      this.#clear(INPUT, INPUT + to - from);
      this.#clear(OUTPUT, outputEnd + SPARE_BYTES);
      from += (this.#results[RESULT] as number) - INPUT;
    }
    return decoded.subarray(0, length);
  }

  /**
   * Steps over at most `count` code points of valid UTF-8, and over the bytes that continue the one before. Returns the
   * offset after them, and leaves in `left` how many of `count` were not there.
   */
  advance(utf8: Buffer, from: number, end: number, count: number): number {
    let at = from;
    this.left = count;
    while (at < end) {
      // A code point has at most four bytes: what is not looked at need not be copied.
      const to = Math.min(at + Math.min(WINDOW_BYTES, 4 * this.left + 1), end);
      utf8.copy(this.#memory, INPUT, at, to);
      const stop = this.#exports.advance(INPUT, INPUT + to - at, this.left) - INPUT;
      this.#clear(INPUT, INPUT + to - at);
      this.left = this.#results[RESULT] as number;
      at += stop;
      if (at < to) break;
    }
    return at;
  }

  #clear(from: number, to: number): void {
    this.#memory.fill(0, from, to);
  }
}

/** The one reader of this thread; null: there is no WebAssembly, or none with vectors. */
export const wideStrings: WideStrings | null = openWideStrings();

function openWideStrings(): WideStrings | null {
  try {
    const module = new WebAssembly.Module(Buffer.from(WIDE_STRINGS_BINARY, 'base64'));
    return new WideStrings(new WebAssembly.Instance(module).exports as Exports);
  } catch {
    return null;
  }
}
