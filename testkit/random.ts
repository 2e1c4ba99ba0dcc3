/** Creates a generator of numbers from 0 (inclusive) to 1 (exclusive), the same for the same seed (mulberry32). */
export function toRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The same for simulations that take more than the 4 billion numbers after which `toRandom` repeats itself (sfc32). */
export function toLongRandom(seed: number): () => number {
  let a = seed | 0;
  let b = 0;
  let c = 0;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  // The first numbers still show that seeds are alike.
  for (let skipped = 0; skipped < 20; skipped++) next();
  return next;
}
