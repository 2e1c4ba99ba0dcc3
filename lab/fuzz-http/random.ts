/** Pseudo-random numbers (sfc32), the same for the same seed and index on every machine. */
export class Random {
  #a: number;
  #b: number;
  #c = 0x9e3779b9;
  #count = 1;

  constructor(seed: number, index: number) {
    this.#a = seed | 0;
    this.#b = index | 0;
    // Removes the similarity of neighbouring seeds.
    for (let left = WARM_UP_ROUNDS; left > 0; left--) this.#next();
  }

  #next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A whole number from 0 to `bound` − 1. */
  below(bound: number): number {
    return Math.floor((this.#next() / 2 ** 32) * bound);
  }

  /** True with a probability of `percent` in 100. */
  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  /** One of several, all equally likely. */
  pick<T>(choices: ArrayLike<T>): T {
    return choices[this.below(choices.length)] as T;
  }

  /** Up to `maxLength` characters of an alphabet. */
  text(alphabet: string, maxLength: number): string {
    let text = '';
    for (let left = this.below(maxLength + 1); left > 0; left--) text += this.pick(alphabet);
    return text;
  }
}

const WARM_UP_ROUNDS = 12;
