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
import { TokenReader } from './token-reader.ts';

/** What is wanted of a response is small: usage, timings. */
const MAX_MEMBER_BYTES = 64 * 1024;
/** `finish_reason` and `index` of a choice; what is longer is neither. */
const MAX_CHOICE_MEMBER_BYTES = 256;
/** More choices than any engine takes in `n`: a response cannot make us keep more. */
const MAX_CHOICES = 1024;

/** Depths at which members or elements are read: of the response, of its `choices`, of one of these. */
const RESPONSE = 1;
const CHOICES = 2;
const CHOICE = 3;

/** A choice that has a `finish_reason`. Without an `index` that is a number, its place in the list counts. */
export interface SkimmedChoice {
  readonly index: number;
  readonly reason: string;
}

/**
 * Finds a few members of a JSON response of any size while it passes in chunks, and keeps nothing else: the raw
 * bytes of wanted top-level members, and the `finish_reason` of every choice. What it finds does not depend on where
 * the chunks are cut. Lenient: of what is not JSON it captures nothing, or what looked like a member; it never throws.
 * Whoever uses a capture must parse it. Of duplicate members the last counts.
 */
export class JsonSkimmer {
  /** The raw bytes of each wanted member that is complete and at most 64 KiB, in the order in which they were found. */
  readonly captured = new Map<string, Buffer>();

  readonly #wanted: readonly string[];
  readonly #token = new TokenReader();
  #finished: SkimmedChoice[] = [];
  #state: 'before' | 'inside' | 'done' = 'before';
  /** Open containers. Which kind of bracket closes is not checked: that is the client's business. */
  #depth = 0;
  /** How many of them are the response, its choices, a choice. */
  #followedDepth = 0;
  #isInString = false;
  /** The last chunk ended, in a string, with a backslash that escapes the first byte of the next. */
  #isEscaped = false;
  #hasBegunChoice = false;
  /** The place of the present choice in the list, its `index` if that is a number, and its finish reason. */
  #choicePlace = 0;
  #choiceIndex: number | undefined;
  #finishReason: string | undefined;

  /** @param wanted names of top-level members, all of them in `KNOWN_NAMES` */
  constructor(wanted: readonly string[]) {
    this.#wanted = wanted;
  }

  /** Whether `choices` has an element that is an object, be it complete or not. */
  get hasBegunChoice(): boolean {
    return this.#hasBegunChoice;
  }

  /** Every complete choice that has a `finish_reason`, in the order of the response. */
  get finished(): readonly SkimmedChoice[] {
    return this.#finished;
  }

  /** Takes the next chunk of the response, of which nothing but captures is kept. */
  push(chunk: Buffer): void {
    let at = this.#state === 'before' ? this.#findStart(chunk) : 0;
    while (at < chunk.length && this.#state === 'inside') {
      if (this.#isInString) {
        at = this.#skipString(chunk, at);
        continue;
      }
      at = this.#depth === this.#followedDepth ? findMark(chunk, at) : findContainer(chunk, at);
      if (at < chunk.length) this.#take(chunk, at++);
    }
    if (this.#state === 'inside') this.#token.carry(chunk);
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

  /** Takes one byte that has a meaning outside strings. */
  #take(chunk: Buffer, at: number): void {
    switch (chunk[at]) {
      case QUOTE:
        this.#isInString = true;
        break;
      case OPEN_BRACE:
        this.#open(true, at);
        break;
      case OPEN_BRACKET:
        this.#open(false, at);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#close(chunk, at);
        break;
      case COMMA:
        if (this.#depth === CHOICES) {
          this.#choicePlace++;
        } else {
          this.#endMember(chunk, at);
          this.#token.beginKey(at + 1);
        }
        break;
      case COLON:
        if (this.#token.endKey(chunk, at)) this.#beginValue(at + 1);
        break;
    }
  }

  #beginValue(at: number): void {
    const { key } = this.#token;
    if (key === undefined) return;
    if (this.#depth === CHOICE) {
      if (key === 'finish_reason' || key === 'index') this.#token.beginValue(at, MAX_CHOICE_MEMBER_BYTES);
    } else if (this.#wanted.includes(key)) {
      this.#token.beginValue(at, MAX_MEMBER_BYTES);
    }
  }

  #open(isObject: boolean, at: number): void {
    const isFollowed = this.#depth === this.#followedDepth && this.#isToFollow(isObject);
    this.#depth++;
    if (!isFollowed) return;
    this.#followedDepth++;
    if (isObject) this.#token.beginKey(at + 1);
    if (this.#depth === CHOICES) {
      this.#choicePlace = 0;
      this.#finished = [];
    } else if (this.#depth === CHOICE) {
      this.#hasBegunChoice = true;
      this.#choiceIndex = undefined;
      this.#finishReason = undefined;
    }
  }

  #isToFollow(isObject: boolean): boolean {
    switch (this.#depth) {
      case 0:
        return true;
      case RESPONSE:
        return !isObject && this.#token.key === 'choices';
      case CHOICES:
        return isObject;
      default:
        return false;
    }
  }

  #close(chunk: Buffer, at: number): void {
    if (this.#depth === this.#followedDepth) {
      if (this.#depth !== CHOICES) this.#endMember(chunk, at);
      if (this.#depth === CHOICE) this.#endChoice();
      this.#token.forget();
      this.#followedDepth--;
    }
    if (--this.#depth === 0) this.#state = 'done';
  }

  #endChoice(): void {
    const reason = this.#finishReason;
    if (reason === undefined || this.#finished.length >= MAX_CHOICES) return;
    this.#finished.push({ index: this.#choiceIndex ?? this.#choicePlace, reason });
  }

  /** A comma or closing brace stands at `at`. */
  #endMember(chunk: Buffer, at: number): void {
    const { key } = this.#token;
    if (!this.#token.isInValue || key === undefined) return;
    if (this.#depth === RESPONSE) {
      const raw = this.#token.end(chunk, at);
      // What was there under this name goes first, so that the order is that of what was found last.
      this.captured.delete(key);
      if (raw !== undefined) this.captured.set(key, raw);
      return;
    }
    const value = this.#token.endScalar(chunk, at);
    if (key === 'index') this.#choiceIndex = typeof value === 'number' ? value : undefined;
    else this.#finishReason = typeof value === 'string' ? value : undefined;
  }

  /** Goes to the end of a string: a quote is its end unless an odd number of backslashes stands before it. */
  #skipString(chunk: Buffer, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    const searchFrom = Math.min(at + SHORT_RUN_BYTES, chunk.length);
    while (at < searchFrom) {
      const byte = chunk[at];
      if (byte === QUOTE) {
        this.#isInString = false;
        return at + 1;
      }
      at += byte === BACKSLASH ? 2 : 1;
    }
    const start = at;
    let quote = chunk.indexOf(QUOTE, start);
    while (quote !== -1 && endsEscaped(chunk, start, quote)) quote = chunk.indexOf(QUOTE, quote + 1);
    if (quote !== -1) {
      this.#isInString = false;
      return quote + 1;
    }
    this.#isEscaped = start > chunk.length || endsEscaped(chunk, start, chunk.length);
    return chunk.length;
  }
}

/** Whether the byte at `end` is escaped by what stands between `start` and it, in a string. */
function endsEscaped(chunk: Buffer, start: number, end: number): boolean {
  let at = end;
  while (at > start && chunk[at - 1] === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}

/** Runs shorter than this are gone over bytewise: for them a DataView, or a native search, costs more than it saves. */
const SHORT_RUN_BYTES = 32;

/** Bytes that have a meaning outside strings, and those of them that matter where no member is read. */
const IS_MARK = tableOf([QUOTE, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON]);
const IS_CONTAINER = tableOf([QUOTE, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET]);

function tableOf(bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of bytes) table[byte] = 1;
  return table;
}

/** Offset of the next byte that has a meaning, or the chunk's length. */
function findMark(chunk: Buffer, from: number): number {
  let at = from;
  while (at < chunk.length && IS_MARK[chunk[at] as number] === 0) at++;
  return at;
}

/**
 * Offset of the next quote, bracket or brace, or the chunk's length. Four bytes at a time, for embeddings:
 * megabytes of digits and commas.
 */
function findContainer(chunk: Buffer, from: number): number {
  const wordsFrom = Math.min(from + SHORT_RUN_BYTES, chunk.length);
  for (let at = from; at < wordsFrom; at++) if (IS_CONTAINER[chunk[at] as number] === 1) return at;
  if (wordsFrom === chunk.length) return wordsFrom;
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
    for (let i = at; i < at + 4; i++) if (IS_CONTAINER[chunk[i] as number] === 1) return i;
  }
  while (at < chunk.length && IS_CONTAINER[chunk[at] as number] === 0) at++;
  return at;
}
