/** The memory of a limit, which can be passed to another thread. */
export interface LimitMemory {
  readonly buffer: SharedArrayBuffer;
  readonly limit: number;
}

/** 64 bytes per worker, so that no two workers share a cache line. */
const ROW_WORDS = 16;

/** A larger limit does not fit a 32-bit word and is counted in units greater than 1. */
const MAX_UNITS = 2 ** 30;

/** Allocates the memory of a limit that `workerCount` workers share. */
export function allocateLimit(workerCount: number, limit: number): LimitMemory {
  const bytes = workerCount * ROW_WORDS * Int32Array.BYTES_PER_ELEMENT;
  return { buffer: new SharedArrayBuffer(bytes), limit };
}

/** Releases everything that a terminated worker held. */
export function clearLimit({ buffer }: LimitMemory, worker: number): void {
  Atomics.store(new Int32Array(buffer), worker * ROW_WORDS, 0);
}

/** How much all workers hold, at most one unit more for each; `limit` in the same measure: bytes or connections. */
export function readLimit({ buffer, limit }: LimitMemory): { readonly now: number; readonly limit: number } {
  return { now: sumOf(new Int32Array(buffer)) * unitOf(limit), limit };
}

/**
 * How much of a resource (bytes of request bodies, client connections) all workers together may hold. Each worker has a
 * word that only it writes. The total is the sum of the words.
 */
export class SharedLimit {
  readonly #words: Int32Array;
  readonly #place: number;
  readonly #unit: number;
  readonly #limitUnits: number;
  /** How much this worker holds. */
  #held = 0;

  constructor({ buffer, limit }: LimitMemory, worker: number) {
    this.#words = new Int32Array(buffer);
    this.#place = worker * ROW_WORDS;
    this.#unit = unitOf(limit);
    this.#limitUnits = Math.floor(limit / this.#unit);
  }

  /**
   * Acquires an amount if it fits into the limit, and returns whether it did. `reservedShare`: the share of the limit,
   * from 0 to 1, that stays free for others.
   */
  tryAcquire(amount: number, reservedShare = 0): boolean {
    // Add first, then check: when two workers compete for the last units, at most one gets them.
    this.#hold(this.#held + amount);
    if (sumOf(this.#words) <= this.#limitUnits * (1 - reservedShare)) return true;
    this.#hold(this.#held - amount);
    return false;
  }

  release(amount: number): void {
    this.#hold(this.#held - amount);
  }

  #hold(amount: number): void {
    this.#held = amount;
    Atomics.store(this.#words, this.#place, Math.ceil(amount / this.#unit));
  }
}

function unitOf(limit: number): number {
  return Math.max(1, Math.ceil(limit / MAX_UNITS));
}

function sumOf(words: Int32Array): number {
  let units = 0;
  for (let place = 0; place < words.length; place += ROW_WORDS) units += Atomics.load(words, place);
  return units;
}
