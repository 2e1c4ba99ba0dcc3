/**
 * The standardized sum of the ranks of differences, each with its sign (Wilcoxon's signed-rank test): positive if they are
 * above zero. If a difference is as likely as its opposite, it is symmetric about zero. Ranks do not see how long a tail
 * is. Null: no difference is other than zero.
 */
export function signedRank(differences: readonly number[]): number | null {
  const sorted = differences.filter((each) => each !== 0).toSorted((a, b) => Math.abs(a) - Math.abs(b));
  let sum = 0;
  let variance = 0;
  for (let at = 0; at < sorted.length; ) {
    let end = at + 1;
    while (end < sorted.length && Math.abs(sorted[end] ?? 0) === Math.abs(sorted[at] ?? 0)) end++;
    // Equal ones share the mean of their ranks.
    const rank = (at + end + 1) / 2;
    for (; at < end; at++) {
      sum += Math.sign(sorted[at] ?? 0) * rank;
      variance += rank * rank;
    }
  }
  return variance === 0 ? null : sum / Math.sqrt(variance);
}
