import { randomFillSync } from 'node:crypto';

/** The secret of one pair of answers. It exists as long as the pair. */
export type PairSalt = readonly [number, number];

/** Draws a salt. */
export function drawSalt(): PairSalt {
  const [one = 0, other = 0] = randomFillSync(new Uint32Array(2));
  return [one, other];
}

/** Bytes of output between two states that are kept. */
const STEP_BYTES = 8;
/** 128 KiB of output: what follows is not compared. */
const MAX_STATES = 16_384;
const MAX_PIECES = 16_384;
const BACKSLASH = 0x5c;

/**
 * A rolling, salted digest of an output: its state after every few bytes, so that two of them show where outputs part.
 * It is no text and leads to none: the salt is random, secret, and forgotten with the pair.
 */
export class OutputDigest {
  #a: number;
  #b: number;
  #bytes = 0;
  readonly #states: number[] = [];
  /** Up to which byte each piece of the output reaches, as it came: usually a token. */
  readonly #pieces: number[] = [];

  constructor([a, b]: PairSalt) {
    this.#a = a | 1;
    this.#b = b;
  }

  /** Bytes of output so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes a piece of the output, in UTF-8. */
  add(piece: Uint8Array, start = 0, end = piece.length): void {
    let [a, b, count] = [this.#a, this.#b, this.#bytes];
    for (let at = start; at < end; at++) {
      const byte = piece[at] as number;
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(((b << 5) | (b >>> 27)) ^ (a + byte), 0x85ebca6b);
      if (++count % STEP_BYTES === 0 && this.#states.length < MAX_STATES) this.#states.push((a ^ b) | 0);
    }
    [this.#a, this.#b, this.#bytes] = [a, b, count];
    if (end > start && this.#pieces.length < MAX_PIECES) this.#pieces.push(count);
  }

  /** Takes the bytes between the quotes of a JSON string. */
  addJson(json: Buffer, start: number, end: number): void {
    const backslash = json.indexOf(BACKSLASH, start);
    if (backslash === -1 || backslash >= end) {
      this.add(json, start, end);
      return;
    }
    try {
      this.add(Buffer.from(String(JSON.parse(`"${json.toString('utf8', start, end)}"`))));
    } catch {
      this.add(json, start, end);
    }
  }

  /** The first byte from which on the outputs differ, give or take a few; null: they are the same as far as both are kept. */
  partsAt(other: OutputDigest): number | null {
    const kept = Math.min(this.#states.length, other.#states.length);
    for (let index = 0; index < kept; index++) {
      if (this.#states[index] !== other.#states[index]) return index * STEP_BYTES;
    }
    const isCut = kept === MAX_STATES;
    const isSame = this.#bytes === other.#bytes && this.#a === other.#a && this.#b === other.#b;
    return isCut || isSame ? null : kept * STEP_BYTES;
  }

  /** How many pieces end before this byte, or at it. */
  piecesBefore(byte: number): number {
    let count = 0;
    for (const end of this.#pieces) if (end <= byte) count++;
    return count;
  }
}
