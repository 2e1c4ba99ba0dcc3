/** Ratios are counted in steps of about 1 %, from a quarter to four times. */
const STEP = 0.01;
const SIDE = 140;

/** How often each ratio came: steps of its logarithm, the middle one is 1. */
export type RatioCounts = readonly number[];

export const NO_RATIOS: RatioCounts = Array.from({ length: 2 * SIDE + 1 }, () => 0);

/** The counts with these logarithms of ratios. */
export function addRatios(counts: RatioCounts, logs: readonly number[]): RatioCounts {
  if (logs.length === 0) return counts;
  const after = [...counts];
  for (const log of logs) {
    const index = SIDE + Math.max(-SIDE, Math.min(SIDE, Math.round(log / STEP)));
    after[index] = (after[index] ?? 0) + 1;
  }
  return after;
}

/** The ratio below which this share of them is; null: there are none. */
export function ratioAt(counts: RatioCounts, share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && before + count >= share * total) {
      const within = (share * total - before) / count;
      return Math.exp((index - SIDE + within - 0.5) * STEP);
    }
    before += count;
  }
  return null;
}

/** The counts that are not zero, each with its ratio. */
export function toRatioList(counts: RatioCounts): readonly (readonly [ratio: number, count: number])[] {
  return counts.flatMap((count, index) =>
    count === 0 ? [] : [[Math.round(1e4 * Math.exp((index - SIDE) * STEP)) / 1e4, count] as const],
  );
}
