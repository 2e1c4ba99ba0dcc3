/*
 * Durations in fixed logarithmic buckets: eight for each doubling, from 1/16 ms to three days. A quantile is off by at
 * most 5 %. Buckets of different times and names can be added.
 */

const BUCKETS = 256;
const PER_DOUBLING = 8;
/** The first bucket ends near 2^-4 ms. */
const FIRST_EXPONENT = -4;

/** The bucket of a duration in milliseconds. */
export function toBucket(ms: number): number {
  if (!(ms > 0)) return 0;
  const bucket = Math.floor((Math.log2(ms) - FIRST_EXPONENT) * PER_DOUBLING);
  return Math.min(Math.max(bucket, 0), BUCKETS - 1);
}

/** How many durations there are in each bucket. */
export class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;

  /** How many durations there are. */
  get total(): number {
    return this.#total;
  }

  add(bucket: number, count = 1): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    this.#total += count;
  }

  /** Adds what `encode` has written. */
  addEncoded(encoded: Uint8Array): void {
    let at = 0;
    const next = (): number => {
      let value = 0;
      for (let factor = 1; at < encoded.length; factor *= 128) {
        const byte = encoded[at++] ?? 0;
        value += (byte & 0x7f) * factor;
        if (byte < 0x80) break;
      }
      return value;
    };
    while (at < encoded.length) {
      const bucket = next();
      this.add(Math.min(bucket, BUCKETS - 1), next());
    }
  }

  /** The buckets that are not empty, each as its number and its count, in varints. */
  encode(): Uint8Array {
    const bytes: number[] = [];
    for (const [bucket, count] of this.#counts.entries()) if (count > 0) pushVarints(bytes, bucket, count);
    return Uint8Array.from(bytes);
  }

  /** The duration that this share of them does not exceed, in milliseconds; null if there is none. */
  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = share * this.#total;
    let below = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      below += count;
      if (count > 0 && below >= rank) return 2 ** ((bucket + 0.5) / PER_DOUBLING + FIRST_EXPONENT);
    }
    return null;
  }
}

function pushVarints(bytes: number[], ...values: readonly number[]): void {
  for (const value of values) {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
    bytes.push(rest);
  }
}
