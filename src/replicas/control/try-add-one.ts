/** Adds one to a word, unless it is at its limit: then answers false. */
export function tryAddOne(words: Int32Array, index: number, limit: number): boolean {
  for (;;) {
    const value = Atomics.load(words, index);
    if (value >= limit) return false;
    if (Atomics.compareExchange(words, index, value, value + 1) === value) return true;
  }
}
