/** A key above this, as written, is none that anybody looks for. */
const MAX_KEY_BYTES = 256;

/** What {@link MemberReader} hands over: the raw value, or undefined if it was larger than wanted. */
export type OnMember = (key: string, raw: Buffer | undefined) => void;

/**
 * Cuts the members out of one level of an object that passes in chunks. Whoever knows where strings and nested
 * values are tells it of the separators of that level; a key runs from a brace or comma to a colon, a value from
 * there to a comma or brace.
 */
export class MemberReader {
  /** The key of the member we are in; undefined while it is not known, or no short string. */
  key: string | undefined;

  readonly #isWanted: (key: string) => boolean;
  readonly #maxValueBytes: number;
  readonly #onMember: OnMember;
  #reading: 'nothing' | 'key' | 'value' = 'nothing';
  /** Where the token being read begins in the current chunk, and what earlier chunks had of it. */
  #from = 0;
  #earlier: Buffer[] = [];
  #earlierBytes = 0;

  constructor(isWanted: (key: string) => boolean, maxValueBytes: number, onMember: OnMember) {
    this.#isWanted = isWanted;
    this.#maxValueBytes = maxValueBytes;
    this.#onMember = onMember;
  }

  /** A brace or comma stands before `at`. */
  beginMember(at: number): void {
    this.key = undefined;
    this.#begin('key', at);
  }

  /** A colon stands at `at`. */
  endKey(chunk: Buffer, at: number): void {
    if (this.#reading !== 'key') return;
    this.key = parseString(this.#end(chunk, at, MAX_KEY_BYTES));
    if (this.key !== undefined && this.#isWanted(this.key)) this.#begin('value', at + 1);
  }

  /** A comma or closing brace stands at `at`. */
  endMember(chunk: Buffer, at: number): void {
    if (this.#reading === 'value' && this.key !== undefined) {
      this.#onMember(this.key, this.#end(chunk, at, this.#maxValueBytes));
    }
    this.#reading = 'nothing';
    this.key = undefined;
  }

  /** The chunk is over: keeps what belongs to the token being read, unless that is too large already. */
  carry(chunk: Buffer): void {
    if (this.#reading === 'nothing') return;
    const maxBytes = this.#reading === 'key' ? MAX_KEY_BYTES : this.#maxValueBytes;
    this.#earlierBytes += chunk.length - this.#from;
    if (this.#earlierBytes > maxBytes) this.#earlier = [];
    else this.#earlier.push(Buffer.from(chunk.subarray(this.#from)));
    this.#from = 0;
  }

  #begin(what: 'key' | 'value', at: number): void {
    this.#reading = what;
    this.#from = at;
    this.#earlier = [];
    this.#earlierBytes = 0;
  }

  /** A copy of the token, so that no chunk is kept alive by it. */
  #end(chunk: Buffer, at: number, maxBytes: number): Buffer | undefined {
    this.#reading = 'nothing';
    if (this.#earlierBytes + at - this.#from > maxBytes) return undefined;
    return Buffer.concat([...this.#earlier, chunk.subarray(this.#from, at)]);
  }
}

/** The string that this raw JSON value is, or undefined if it is none. */
export function parseString(raw: Buffer | undefined): string | undefined {
  const value = parse(raw);
  return typeof value === 'string' ? value : undefined;
}

/** The count that this raw JSON value is, or undefined if it is none. */
export function parseCount(raw: Buffer | undefined): number | undefined {
  const value = parse(raw);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function parse(raw: Buffer | undefined): unknown {
  if (raw === undefined) return undefined;
  try {
    return JSON.parse(raw.toString());
  } catch {
    // Never passed on: V8's message quotes its input.
    return undefined;
  }
}
