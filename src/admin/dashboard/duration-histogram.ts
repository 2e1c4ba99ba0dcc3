/** Bucket bounds grow by 8 %, so a quantile is off by at most 4 %, which is not visible. */
const GROWTH = 1.08;
const SMALLEST_MS = 0.5;
/** Up to 15 minutes, the default limit for a replica's response. Longer durations count as that. */
const BUCKET_COUNT = 188;

const LOG_GROWTH = Math.log(GROWTH);

/** Counts durations in buckets of growing width. Takes 752 bytes for any number of durations. */
export class DurationHistogram {
  readonly #counts = new Uint32Array(BUCKET_COUNT);
  #count = 0;

  /** Counts one duration in milliseconds. */
  add(ms: number): void {
    const bucket = ms < SMALLEST_MS ? 0 : 1 + Math.floor(Math.log(ms / SMALLEST_MS) / LOG_GROWTH);
    const index = Math.min(bucket, BUCKET_COUNT - 1);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
  }

  /** Adds the counts of another histogram. */
  merge(other: DurationHistogram): void {
    if (other.#count === 0) return;
    for (const [index, count] of other.#counts.entries()) {
      this.#counts[index] = (this.#counts[index] ?? 0) + count;
    }
    this.#count += other.#count;
  }

  /** The duration in milliseconds that this share (0 to 1) of all durations does not exceed; null without durations. */
  quantile(share: number): number | null {
    if (this.#count === 0) return null;
    const rank = share * this.#count;
    let below = 0;
    for (const [index, count] of this.#counts.entries()) {
      if (count > 0 && below + count >= rank) {
        const lower = index === 0 ? 0 : upperBoundMs(index - 1);
        return lower + ((rank - below) / count) * (upperBoundMs(index) - lower);
      }
      below += count;
    }
    return upperBoundMs(BUCKET_COUNT - 1);
  }
}

function upperBoundMs(index: number): number {
  return SMALLEST_MS * GROWTH ** index;
}
