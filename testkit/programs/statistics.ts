/** The percentile at rank p·(n−1), interpolated linearly, as docs/record.md defines it; NaN of no values. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = p * (sorted.length - 1);
  const low = sorted[Math.floor(rank)] ?? Number.NaN;
  const high = sorted[Math.ceil(rank)] ?? Number.NaN;
  return low + (high - low) * (rank - Math.floor(rank));
}

/** The median. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The median of some values and their range; all NaN when there are none. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Median, minimum and maximum of the values that are not NaN. */
export function toSpread(values: readonly number[]): Spread {
  const numbers = values.filter((value) => !Number.isNaN(value));
  return { median: median(numbers), min: percentile(numbers, 0), max: percentile(numbers, 1) };
}
