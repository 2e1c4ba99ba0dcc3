const BASE_MS = 500;
const MAX_MS = 30_000;

/**
 * How long to wait after `failures` failed calls in a row: not at all after the first, because connections end now and
 * then; from then on at least half of a time that doubles up to 30 s. `random`: from 0 to 1.
 */
export function nextDelayMs(failures: number, random: number): number {
  if (failures <= 1) return 0;
  const longestMs = Math.min(MAX_MS, BASE_MS * 2 ** Math.min(failures - 2, 16));
  return longestMs * (0.5 + 0.5 * random);
}
