/**
 * The percentile of ascending values by linear interpolation at rank p·(n−1), as NumPy's default has it.
 *
 * @param sorted at least one value, ascending
 * @param p from 0 to 1
 */
export function percentile(sorted: Float64Array, p: number): number {
  const rank = p * (sorted.length - 1);
  const below = Math.floor(rank);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? Number.NaN;
  return low + (high - low) * (rank - below);
}

const INITIAL_GAPS = 64;
/** 2 MiB a stream. No model's context holds so many tokens; what comes after is not counted. */
const MAX_GAPS = 262_144;

/** The gaps between the chunks of one stream, all of them, so that percentiles are exact. */
export class GapRecorder {
  #gapsMs = new Float64Array(INITIAL_GAPS);
  #count = 0;
  #lastArrivalMs: number | undefined;
  #isSorted = true;

  /** A chunk arrived; `arrivalMs` never decreases. */
  add(arrivalMs: number): void {
    if (this.#lastArrivalMs !== undefined) this.#addGap(arrivalMs - this.#lastArrivalMs);
    this.#lastArrivalMs = arrivalMs;
  }

  /** The median gap in milliseconds; undefined with fewer than two chunks. */
  p50(): number | undefined {
    return this.#percentile(0.5);
  }

  /** The 95th percentile of the gaps in milliseconds; undefined with fewer than two chunks. */
  p95(): number | undefined {
    return this.#percentile(0.95);
  }

  #addGap(gapMs: number): void {
    if (this.#count === MAX_GAPS) return;
    if (this.#count === this.#gapsMs.length) {
      const grown = new Float64Array(this.#count * 2);
      grown.set(this.#gapsMs);
      this.#gapsMs = grown;
    }
    this.#gapsMs[this.#count++] = gapMs;
    this.#isSorted = false;
  }

  #percentile(p: number): number | undefined {
    if (this.#count === 0) return undefined;
    const gapsMs = this.#gapsMs.subarray(0, this.#count);
    // The order of arrival is not needed any more, so they are sorted in place, once.
    if (!this.#isSorted) gapsMs.sort();
    this.#isSorted = true;
    return percentile(gapsMs, p);
  }
}
