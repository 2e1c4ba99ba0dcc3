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

const MODEL = 'model';
/** The members in which events hold what they are about: of responses, and of messages. */
const HOLDERS: ReadonlySet<string | null> = new Set(['response', 'message']);
/** A longer key, as it is written, is none of these, even if all its characters are escapes. */
const MAX_KEY_BYTES = 6 * 'response'.length;

/**
 * Finds the string that names the model in a JSON object that passes in pieces: the value of `model`, at the top or in
 * `response` or `message`. It keeps a key at most. What is not JSON has no name.
 */
export class ModelFinder {
  /** Whether the last byte that was read is part of the name, from its opening quote on. */
  isInName = false;
  /** How many containers are open. Kinds of closing brackets are not checked. */
  #depth = 0;
  /** How many of them are the object and the holder in it. */
  #followedDepth = 0;
  #isInString = false;
  #isEscaped = false;
  #expectsKey = false;
  /** The bytes of the key that is being read; null outside of keys. */
  #keyBytes: number[] | null = null;
  /** The key whose value is next, in an object that is followed. */
  #key: string | null = null;

  /** Another text begins. */
  reset(): void {
    this.isInName = this.#isInString = this.#isEscaped = this.#expectsKey = false;
    this.#depth = this.#followedDepth = 0;
    this.#keyBytes = this.#key = null;
  }

  /**
   * Reads `bytes[at, end)`, but no further than the opening or the closing quote of a name. Returns the offset after the
   * last byte that was read.
   */
  read(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      if (this.#isInString) {
        at = this.#readString(bytes, at, end);
        if (this.isInName && !this.#isInString) {
          this.isInName = false;
          return at;
        }
        continue;
      }
      this.#take(bytes[at++] as number);
      if (this.isInName) return at;
    }
    return at;
  }

  #readString(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const byte = bytes[at++] as number;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#endString();
        break;
      }
      if (this.#keyBytes !== null && this.#keyBytes.length <= MAX_KEY_BYTES) this.#keyBytes.push(byte);
    }
    return at;
  }

  #endString(): void {
    this.#isInString = false;
    if (this.#keyBytes === null) return;
    this.#key = this.#keyBytes.length > MAX_KEY_BYTES ? null : toKey(this.#keyBytes);
    this.#keyBytes = null;
  }

  #take(byte: number): void {
    const isFollowed = this.#depth > 0 && this.#depth === this.#followedDepth;
    switch (byte) {
      case QUOTE:
        this.#isInString = true;
        if (!isFollowed) return;
        if (this.#expectsKey) this.#keyBytes = [];
        else this.isInName = this.#key === MODEL;
        return;
      case COLON:
        this.#expectsKey = false;
        return;
      case COMMA:
        this.#expectsKey = isFollowed;
        this.#key = null;
        return;
      case OPEN_BRACE:
        if (this.#depth === 0 || (isFollowed && this.#depth === 1 && HOLDERS.has(this.#key))) {
          this.#followedDepth = this.#depth + 1;
          this.#expectsKey = true;
        }
        this.#depth++;
        this.#key = null;
        return;
      case OPEN_BRACKET:
        this.#depth++;
        this.#key = null;
        return;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth = Math.max(0, this.#depth - 1);
        this.#followedDepth = Math.min(this.#followedDepth, this.#depth);
        this.#expectsKey = false;
        this.#key = null;
    }
  }
}

/** Null: it is not JSON. */
function toKey(bytes: readonly number[]): string | null {
  const text = Buffer.from(bytes).toString('latin1');
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return null;
  }
}
