import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '#json/bytes';
import { findContainer, findMark, SHORT_RUN_BYTES } from './find-mark.ts';
import { TokenReader } from './token-reader.ts';

/** Larger members are not captured: usage and timings are small. */
const MAX_MEMBER_BYTES = 64 * 1024;
/** Larger values of an item are not captured: they are numbers and single words. */
const MAX_ITEM_VALUE_BYTES = 256;
/** More items than any engine sends choices: an answer cannot make the scanner keep more. */
const MAX_ITEMS = 1024;

/** Depths at which members or elements are read: of the answer, of its list, of an item of the list. */
const ANSWER = 1;
const LIST = 2;
const ITEM = 3;

/** What a scanner looks for. */
export interface WantedMembers {
  /** Top-level members whose bytes are captured. */
  readonly members: readonly string[];
  /** The top-level member that is a list of objects; null: none is wanted. */
  readonly list: string | null;
  /** Members of the list's items whose scalar values are captured. */
  readonly itemMembers: readonly string[];
}

/** One object of the wanted list. */
export interface ScannedItem {
  /** Its position in the list, other elements included. */
  readonly position: number;
  /** Its wanted values, in the order of `itemMembers`; undefined: absent, too large, or not a scalar. */
  readonly values: readonly unknown[];
}

/**
 * Finds a few members of a JSON object of any size as it passes in chunks. Keeps nothing else. The result does not
 * depend on where the chunks are cut. Of duplicate members the last one counts.
 *
 * The scanner is lenient and never throws: it captures nothing from input that is not JSON, or what looked like a
 * member. Parse each captured member before use.
 */
export class MemberScanner {
  /** A copy of each wanted member's value that is complete and at most 64 KiB, in the order of their last occurrences. */
  readonly captured = new Map<string, Buffer>();

  readonly #wanted: WantedMembers;
  readonly #token = new TokenReader();
  #items: ScannedItem[] = [];
  #state: 'before' | 'inside' | 'done' = 'before';
  #isWhole = false;
  /** How many containers are open. Kinds of closing brackets are not checked. */
  #depth = 0;
  /** How many of them are the answer, its list, an item. */
  #followedDepth = 0;
  #isInString = false;
  /** The last chunk ended inside a string, with a backslash that escapes the first byte of the next chunk. */
  #isEscaped = false;
  #hasBegunItem = false;
  #itemPosition = 0;
  #itemValues: unknown[] = [];

  constructor(wanted: WantedMembers) {
    this.#wanted = wanted;
  }

  /** Whether the object has come to its end. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether the list has an element that is an object, complete or not. */
  get hasBegunItem(): boolean {
    return this.#hasBegunItem;
  }

  /** Every complete item that has a wanted value, in the order of the list; at most 1024. */
  get items(): readonly ScannedItem[] {
    return this.#items;
  }

  /** Takes the next chunk. Keeps no reference to it: a chunk is needed for the duration of the call only. */
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

  /** Finds the opening brace. Input that begins in another way is not a JSON object. */
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
        if (this.#depth === LIST) {
          this.#itemPosition++;
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
    const { members, itemMembers } = this.#wanted;
    if (this.#depth === ITEM) {
      if (itemMembers.includes(key)) this.#token.beginValue(at, MAX_ITEM_VALUE_BYTES);
    } else if (members.includes(key)) {
      this.#token.beginValue(at, MAX_MEMBER_BYTES);
    }
  }

  #open(isObject: boolean, at: number): void {
    const isFollowed = this.#depth === this.#followedDepth && this.#isToFollow(isObject);
    this.#depth++;
    if (!isFollowed) return;
    this.#followedDepth++;
    if (isObject) this.#token.beginKey(at + 1);
    if (this.#depth === LIST) {
      this.#itemPosition = 0;
      this.#items = [];
    } else if (this.#depth === ITEM) {
      this.#hasBegunItem = true;
      this.#itemValues = [];
    }
  }

  #isToFollow(isObject: boolean): boolean {
    switch (this.#depth) {
      case 0:
        return true;
      case ANSWER:
        return !isObject && this.#token.key !== undefined && this.#token.key === this.#wanted.list;
      case LIST:
        return isObject;
      default:
        return false;
    }
  }

  #close(chunk: Buffer, at: number): void {
    if (this.#depth === this.#followedDepth) {
      if (this.#depth !== LIST) this.#endMember(chunk, at);
      if (this.#depth === ITEM) this.#endItem();
      this.#token.forget();
      this.#followedDepth--;
    }
    if (--this.#depth > 0) return;
    this.#state = 'done';
    this.#isWhole = true;
  }

  #endItem(): void {
    if (this.#itemValues.length === 0 || this.#items.length >= MAX_ITEMS) return;
    this.#items.push({ position: this.#itemPosition, values: this.#itemValues });
  }

  /** Ends a member at the comma or closing brace at `at`. */
  #endMember(chunk: Buffer, at: number): void {
    const { key } = this.#token;
    if (!this.#token.isInValue || key === undefined) return;
    if (this.#depth === ANSWER) {
      const raw = this.#token.end(chunk, at);
      // Deleting the earlier value first keeps the map in the order of last occurrences.
      this.captured.delete(key);
      if (raw !== undefined) this.captured.set(key, raw);
      return;
    }
    const { itemMembers } = this.#wanted;
    // The whole row is filled at once: an array with holes costs more.
    if (this.#itemValues.length === 0)
      for (let i = 0; i < itemMembers.length; i++) this.#itemValues.push(undefined);
    this.#itemValues[itemMembers.indexOf(key)] = this.#token.endScalar(chunk, at);
  }

  /** Finds the end of a string: the first quote with an even number of backslashes before it. */
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

/** Whether backslashes between `start` and `end` escape the byte at `end`. */
function endsEscaped(chunk: Buffer, start: number, end: number): boolean {
  let at = end;
  while (at > start && chunk[at - 1] === BACKSLASH) at--;
  return (end - at) % 2 === 1;
}
