/** The memory of a limit, as it can be handed to another thread. */
export interface LimitMemory {
  readonly buffer: SharedArrayBuffer;
  readonly limit: number;
}

/** 64 bytes: the words of two workers share no cache line. */
const ROW_WORDS = 16;

/** A limit may be more than a word can hold: it is counted in units, of one each up to this many. */
const MAX_UNITS = 2 ** 30;

/** Reserves the memory of a limit that so many workers keep together. */
export function allocateLimit(workerCount: number, limit: number): LimitMemory {
  const bytes = workerCount * ROW_WORDS * Int32Array.BYTES_PER_ELEMENT;
  return { buffer: new SharedArrayBuffer(bytes), limit };
}

/** What a worker that ended had taken is free again. */
export function clearLimit({ buffer }: LimitMemory, worker: number): void {
  Atomics.store(new Int32Array(buffer), worker * ROW_WORDS, 0);
}

/**
 * So much of something (bytes of request bodies, client connections) that all workers together may hold. Each has a
 * word that only it writes; what they hold is the sum.
 */
export class SharedLimit {
  readonly #words: Int32Array;
  readonly #place: number;
  readonly #unit: number;
  readonly #limitUnits: number;
  /** What this worker holds. */
  #held = 0;

  constructor({ buffer, limit }: LimitMemory, worker: number) {
    this.#words = new Int32Array(buffer);
    this.#place = worker * ROW_WORDS;
    this.#unit = Math.max(1, Math.ceil(limit / MAX_UNITS));
    this.#limitUnits = Math.floor(limit / this.#unit);
  }

  /**
   * Whether so much could be taken; nothing is taken when it could not. `leaves`: the share of the limit, from 0 to 1,
   * that is left for others.
   */
  tryTake(amount: number, leaves = 0): boolean {
    // Taken first and looked at afterwards: of two workers at the brim at most one gets the rest.
    this.#hold(this.#held + amount);
    if (this.#heldByAll() <= this.#limitUnits * (1 - leaves)) return true;
    this.#hold(this.#held - amount);
    return false;
  }

  giveBack(amount: number): void {
    this.#hold(this.#held - amount);
  }

  #hold(amount: number): void {
    this.#held = amount;
    Atomics.store(this.#words, this.#place, Math.ceil(amount / this.#unit));
  }

  #heldByAll(): number {
    let units = 0;
    for (let place = 0; place < this.#words.length; place += ROW_WORDS) {
      units += Atomics.load(this.#words, place);
    }
    return units;
  }
}
