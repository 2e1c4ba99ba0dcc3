/** Bucket bounds grow by 8 %, so a quantile is off by at most 4 %, which is not visible. */
const GROWTH = 1.08;
const SMALLEST_MS = 0.5;
/** Up to 15 minutes, the default limit for a replica's response. Longer durations count as that. */
const BUCKET_COUNT = 188;

const UPPER_BOUNDS_MS = Float64Array.from(
  { length: BUCKET_COUNT },
  (_, bucket) => SMALLEST_MS * GROWTH ** bucket,
);

const BUCKETS_PER_E = 1 / Math.log(GROWTH);

/** The bucket of a duration in milliseconds: one logarithm, shared by all histograms that count the duration. */
export function toBucket(ms: number): number {
  if (!(ms >= SMALLEST_MS)) return 0;
  return Math.min(1 + Math.floor(Math.log(ms / SMALLEST_MS) * BUCKETS_PER_E), BUCKET_COUNT - 1);
}

/** Counts durations in buckets of growing width. Takes 752 bytes for any number of durations, and nothing for none. */
export class DurationHistogram {
  #counts: Uint32Array | null = null;
  #count = 0;

  /** Counts one duration by its bucket. */
  add(bucket: number): void {
    this.#counts ??= new Uint32Array(BUCKET_COUNT);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count += 1;
  }

  /** Adds the counts of another histogram. */
  merge(other: DurationHistogram): void {
    this.#addCounts(other, 1);
  }

  /** Takes away the counts of another histogram, which were added before. */
  subtract(other: DurationHistogram): void {
    this.#addCounts(other, -1);
  }

  /** Forgets all durations and keeps the memory. */
  clear(): void {
    if (this.#count > 0) this.#counts?.fill(0);
    this.#count = 0;
  }

  /** The duration in milliseconds that this share (0 to 1) of all durations does not exceed; null without durations. */
  quantile(share: number): number | null {
    const counts = this.#counts;
    if (counts === null || this.#count === 0) return null;
    const rank = share * this.#count;
    let below = 0;
    for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
      const count = counts[bucket] ?? 0;
      if (count > 0 && below + count >= rank) {
        const lower = bucket === 0 ? 0 : upperBoundMs(bucket - 1);
        return lower + ((rank - below) / count) * (upperBoundMs(bucket) - lower);
      }
      below += count;
    }
    return upperBoundMs(BUCKET_COUNT - 1);
  }

  #addCounts(other: DurationHistogram, sign: 1 | -1): void {
    const others = other.#counts;
    if (others === null || other.#count === 0) return;
    this.#counts ??= new Uint32Array(BUCKET_COUNT);
    const counts = this.#counts;
    for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
      counts[bucket] = (counts[bucket] ?? 0) + sign * (others[bucket] ?? 0);
    }
    this.#count += sign * other.#count;
  }
}

function upperBoundMs(bucket: number): number {
  return UPPER_BOUNDS_MS[bucket] ?? Number.POSITIVE_INFINITY;
}
