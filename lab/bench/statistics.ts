/** The middle of some values and how far they lie apart; all NaN when there are none. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Median, least and greatest of the values that are numbers. */
export function toSpread(values: readonly number[]): Spread {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  };
}
