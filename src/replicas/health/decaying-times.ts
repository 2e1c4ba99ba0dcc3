/** What is known counts half after this time. */
const HALF_LIFE_MS = 600_000;

/** Each step is the square root of two: half a millisecond to 18 minutes. */
const BUCKETS = 42;
const FIRST_MS = 0.5;

/** A distribution of times that forgets: 168 bytes, and a few steps for each time. */
export class DecayingTimes {
  readonly #counts = new Float32Array(BUCKETS);
  #count = 0;
  #halvedMs = Number.NEGATIVE_INFINITY;

  /** How many times it knows. Older ones count less. */
  get count(): number {
    return this.#count;
  }

  /** Adds a time. `nowMs`: monotonic. */
  add(ms: number, nowMs: number): void {
    this.#halve(nowMs);
    const bucket = Math.ceil(2 * Math.log2(Math.max(ms, FIRST_MS) / FIRST_MS));
    const index = Math.min(BUCKETS - 1, bucket);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count++;
  }

  /** At least what this share of the times is at most: the upper end of a step. */
  quantile(share: number): number {
    let seen = 0;
    for (const [index, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= share * this.#count) return FIRST_MS * 2 ** (index / 2);
    }
    return FIRST_MS * 2 ** ((BUCKETS - 1) / 2);
  }

  #halve(nowMs: number): void {
    const steps = Math.floor((nowMs - this.#halvedMs) / HALF_LIFE_MS);
    if (steps < 1) return;
    this.#halvedMs = steps < Number.POSITIVE_INFINITY ? this.#halvedMs + steps * HALF_LIFE_MS : nowMs;
    const factor = 0.5 ** steps;
    this.#count *= factor;
    for (const [index, count] of this.#counts.entries()) this.#counts[index] = count * factor;
  }
}
