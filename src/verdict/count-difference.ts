/** How often something happened among the requests of the replica that is judged, and among those of its peers. */
export interface Counts {
  readonly own: number;
  readonly ownTotal: number;
  readonly peers: number;
  readonly peersTotal: number;
}

/** The odds ratios that the bets assume, as multiples of the harmless one. */
const FACTORS = [2, 5, 20, 100] as const;

/** The number of bets on a count. */
export const COUNT_BETS = FACTORS.length;

/**
 * The gains of the bets that something is more frequent on the replica: that its odds are more than `harmless` times
 * those of its peers. `harmless` is at least 1.
 *
 * The requests of one time are compared given how many of them are concerned in all (Fisher's noncentral hypergeometric
 * distribution), so it does not matter how frequent it is, or whether it comes in waves that reach all replicas. At the
 * harmless ratio the mean of each gain is 1; below it, less.
 */
export function countGains(counts: Counts, harmless: number): readonly number[] {
  const { own, ownTotal, peers, peersTotal } = counts;
  if (ownTotal === 0 || peersTotal === 0 || own + peers === 0) return FACTORS.map(() => 0);
  const total = { ownTotal, peersTotal, concerned: own + peers };
  const atHarmless = logNormalizer(total, harmless);
  return FACTORS.map(
    (factor) => own * Math.log(factor) + atHarmless - logNormalizer(total, harmless * factor),
  );
}

/** The logarithm of Σ C(own, x)·C(peers, m − x)·ratio^x, up to a factor that does not depend on the ratio. */
function logNormalizer(
  { ownTotal, peersTotal, concerned }: { ownTotal: number; peersTotal: number; concerned: number },
  ratio: number,
): number {
  const first = Math.max(0, concerned - peersTotal);
  const last = Math.min(concerned, ownTotal);
  let logTerm = first * Math.log(ratio);
  let highest = logTerm;
  let sum = 1;
  for (let x = first; x < last; x++) {
    const step = ((ownTotal - x) * (concerned - x)) / ((x + 1) * (peersTotal - concerned + x + 1));
    logTerm += Math.log(step * ratio);
    if (logTerm > highest) {
      sum = sum * Math.exp(highest - logTerm) + 1;
      highest = logTerm;
    } else sum += Math.exp(logTerm - highest);
  }
  return highest + Math.log(sum);
}
