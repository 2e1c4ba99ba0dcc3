/** What the drawings of counts have in common. Pure. */

/** A drawing of requests in five seconds is as high as this many at least: one failure is no mountain. */
export const LEAST_REQUESTS = 10;

/**
 * The values of a line of failures: none where there is no failure, so that no line runs along the bottom. The zeros
 * beside a failure stay, so that a single one has a peak.
 * @param {readonly (number | null)[]} failures
 * @returns {(number | null)[]}
 */
export function toFailureLine(failures) {
  /** @param {number} at */
  const hasFailed = (at) => (failures[at] ?? 0) > 0;
  return failures.map((value, at) =>
    hasFailed(at - 1) || hasFailed(at) || hasFailed(at + 1) ? value : null,
  );
}
