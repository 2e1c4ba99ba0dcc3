import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  viewOf,
} from './bytes.ts';
import { MemberReader, parseCount, parseString } from './member-reader.ts';

/** What is wanted of a response is small: usage, timings, an error. */
const MAX_MEMBER_BYTES = 64 * 1024;
/** `finish_reason` and `index` of a choice; what is longer is neither. */
const MAX_CHOICE_MEMBER_BYTES = 256;
/** More choices than any engine takes in `n`: a response cannot make us keep more. */
const MAX_CHOICES = 1024;

/** Depth of the members of the response object. */
const TOP_LEVEL = 1;
/** Depth of the members of a choice: response object, `choices` array, choice object. */
const CHOICE_LEVEL = 3;

/**
 * Finds a few members of a JSON response of any size while it passes in chunks, and keeps nothing else: the raw
 * bytes of wanted top-level members, and the `finish_reason` of every choice. Lenient: of what is not JSON it
 * captures nothing, or what looked like a member; it never throws. Whoever uses a capture must parse it.
 */
export class JsonSkimmer {
  /** The raw bytes of the last occurrence of each wanted member that is complete and at most 64 KiB. */
  readonly captured = new Map<string, Buffer>();

  readonly #topReader: MemberReader;
  readonly #choiceReader: MemberReader;
  readonly #finishReasons = new Map<number, string>();
  #state: 'before' | 'inside' | 'done' = 'before';
  /** Open containers. Which kind of bracket closes is not checked: that is the client's business. */
  #depth = 0;
  #isInString = false;
  /** The last chunk ended, in a string, with a backslash that escapes the first byte of the next. */
  #isEscaped = false;
  #isInChoices = false;
  #isInChoice = false;
  #choicesSeen = 0;
  #choiceIndex: number | undefined;
  #finishReason: string | undefined;

  constructor(wanted: { readonly topLevel: readonly string[] }) {
    const topLevel = new Set(wanted.topLevel);
    this.#topReader = new MemberReader(
      (key) => topLevel.has(key),
      MAX_MEMBER_BYTES,
      (key, raw) => {
        if (raw === undefined) this.captured.delete(key);
        else this.captured.set(key, trimmed(raw));
      },
    );
    this.#choiceReader = new MemberReader(
      (key) => key === 'index' || key === 'finish_reason',
      MAX_CHOICE_MEMBER_BYTES,
      (key, raw) => {
        if (key === 'index') this.#choiceIndex = parseCount(raw);
        else this.#finishReason = parseString(raw);
      },
    );
  }

  /** The `finish_reason` of every complete choice that has one, in the order of their `index`. */
  get finishReasons(): string[] {
    return [...this.#finishReasons].sort(([a], [b]) => a - b).map(([, reason]) => reason);
  }

  /** Takes the next chunk of the response, of which nothing but captures is kept. */
  push(chunk: Buffer): void {
    let at = this.#state === 'before' ? this.#findStart(chunk) : 0;
    while (at < chunk.length && this.#state === 'inside') {
      if (this.#isInString) at = this.#skipString(chunk, at);
      else if (this.#reader() === undefined) at = this.#readStructure(chunk, findStructure(chunk, at));
      else at = this.#readStructure(chunk, at);
    }
    if (this.#state !== 'inside') return;
    this.#topReader.carry(chunk);
    this.#choiceReader.carry(chunk);
  }

  /** Goes to the opening brace of the response; what begins otherwise is no JSON object. */
  #findStart(chunk: Buffer): number {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (byte === OPEN_BRACE) {
        this.#state = 'inside';
        return at;
      }
      // White space, or a byte of the byte order mark EF BB BF.
      const mayPrecede = byte <= 0x20 || byte === 0xef || byte === 0xbb || byte === 0xbf;
      if (!mayPrecede) {
        this.#state = 'done';
        break;
      }
    }
    return chunk.length;
  }

  /** Who reads the members of the object we are in, if anybody wants them. */
  #reader(): MemberReader | undefined {
    if (this.#depth === TOP_LEVEL) return this.#topReader;
    return this.#isInChoice && this.#depth === CHOICE_LEVEL ? this.#choiceReader : undefined;
  }

  /** Takes one byte outside strings, and returns the offset of the next. */
  #readStructure(chunk: Buffer, at: number): number {
    switch (chunk[at]) {
      case QUOTE:
        this.#isInString = true;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#open(chunk[at] === OPEN_BRACE, at);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#reader()?.endMember(chunk, at);
        this.#close();
        break;
      case COMMA:
        this.#reader()?.endMember(chunk, at);
        this.#reader()?.beginMember(at + 1);
        break;
      case COLON:
        this.#reader()?.endKey(chunk, at);
        break;
    }
    return at + 1;
  }

  #open(isObject: boolean, at: number): void {
    this.#depth++;
    if (this.#depth === TOP_LEVEL + 1 && !isObject && this.#topReader.key === 'choices') {
      this.#isInChoices = true;
      this.#choicesSeen = 0;
      this.#finishReasons.clear();
    } else if (this.#depth === CHOICE_LEVEL && isObject && this.#isInChoices) {
      this.#isInChoice = true;
      this.#choiceIndex = undefined;
      this.#finishReason = undefined;
    }
    if (isObject) this.#reader()?.beginMember(at + 1);
  }

  #close(): void {
    this.#depth--;
    if (this.#depth === CHOICE_LEVEL - 1 && this.#isInChoice) {
      this.#isInChoice = false;
      const index = this.#choiceIndex ?? this.#choicesSeen;
      this.#choicesSeen++;
      if (this.#finishReason !== undefined && this.#finishReasons.size < MAX_CHOICES) {
        this.#finishReasons.set(index, this.#finishReason);
      }
    } else if (this.#depth === TOP_LEVEL) {
      this.#isInChoices = false;
    } else if (this.#depth === 0) {
      this.#state = 'done';
    }
  }

  /** Goes to the end of a string: a quote is its end unless an odd number of backslashes stands before it. */
  #skipString(chunk: Buffer, at: number): number {
    const start = this.#isEscaped ? at + 1 : at;
    this.#isEscaped = false;
    let quote = chunk.indexOf(QUOTE, start);
    while (quote !== -1 && endsEscaped(chunk, start, quote)) quote = chunk.indexOf(QUOTE, quote + 1);
    if (quote !== -1) {
      this.#isInString = false;
      return quote + 1;
    }
    this.#isEscaped = endsEscaped(chunk, start, chunk.length);
    return chunk.length;
  }
}

/** Whether the byte at `end` is escaped by what stands between `start` and it, in a string. */
function endsEscaped(chunk: Buffer, start: number, end: number): boolean {
  let at = end;
  while (at > start && chunk[at - 1] === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}

/** Runs shorter than this are gone over bytewise: for them a DataView costs more than it saves. */
const SHORT_RUN_BYTES = 32;

/**
 * Offset of the next quote, bracket or brace, or the chunk's length. Four bytes at a time, for embeddings:
 * megabytes of digits and commas.
 */
function findStructure(chunk: Buffer, from: number): number {
  const wordsFrom = Math.min(from + SHORT_RUN_BYTES, chunk.length);
  for (let at = from; at < wordsFrom; at++) if (isStructure(chunk[at] as number)) return at;
  const view = viewOf(chunk);
  let at = wordsFrom;
  for (; at + 4 <= chunk.length; at += 4) {
    const word = view.getInt32(at, true);
    const quote = word ^ 0x22222222;
    // Setting the bits 26 makes 7F of the brackets and braces (5B, 5D, 7B, 7D), and of 59, 5F, 79 and 7F,
    // which are not found in numbers: for them the search is only slower.
    const bracket = (word | 0x26262626) ^ 0x7f7f7f7f;
    const found = ((quote - 0x01010101) & ~quote) | ((bracket - 0x01010101) & ~bracket);
    if ((found & 0x80808080) === 0) continue;
    for (let i = at; i < at + 4; i++) if (isStructure(chunk[i] as number)) return i;
  }
  while (at < chunk.length && !isStructure(chunk[at] as number)) at++;
  return at;
}

function isStructure(byte: number): boolean {
  return (
    byte === QUOTE ||
    byte === OPEN_BRACKET ||
    byte === CLOSE_BRACKET ||
    byte === OPEN_BRACE ||
    byte === CLOSE_BRACE
  );
}

function trimmed(raw: Buffer): Buffer {
  let start = 0;
  let end = raw.length;
  while (start < end && (raw[start] as number) <= 0x20) start++;
  while (end > start && (raw[end - 1] as number) <= 0x20) end--;
  return raw.subarray(start, end);
}
