/**
 * The percentile of ascending values by linear interpolation at rank p·(n−1), NumPy's default.
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

/** 2 MiB per stream. No model's context holds so many tokens. Further gaps are not counted. */
const MAX_GAPS = 262_144;

/** All gaps between the chunks of one stream, so that percentiles are exact. */
export class GapRecorder {
  readonly #gapsMs: number[] = [];
  #lastArrivalMs: number | undefined;

  /** A chunk arrived; `arrivalMs` never decreases. */
  add(arrivalMs: number): void {
    if (this.#lastArrivalMs !== undefined && this.#gapsMs.length < MAX_GAPS) {
      this.#gapsMs.push(arrivalMs - this.#lastArrivalMs);
    }
    this.#lastArrivalMs = arrivalMs;
  }

  /** How many chunks have arrived, at most one more than MAX_GAPS. */
  get chunkCount(): number {
    return this.#lastArrivalMs === undefined ? 0 : this.#gapsMs.length + 1;
  }

  /** The median gap and the 95th percentile, in milliseconds; null with fewer than two chunks. */
  percentiles(): { readonly p50: number; readonly p95: number } | null {
    if (this.#gapsMs.length === 0) return null;
    const sorted = new Float64Array(this.#gapsMs).sort();
    return { p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95) };
  }

  /** The longest gap, and how long after the first chunk it began; null with fewer than two chunks. */
  longest(): { readonly ms: number; readonly afterMs: number } | null {
    let [longestMs, longestAfterMs, atMs] = [-1, 0, 0];
    for (const gapMs of this.#gapsMs) {
      if (gapMs > longestMs) {
        longestMs = gapMs;
        longestAfterMs = atMs;
      }
      atMs += gapMs;
    }
    return longestMs < 0 ? null : { ms: longestMs, afterMs: longestAfterMs };
  }
}
