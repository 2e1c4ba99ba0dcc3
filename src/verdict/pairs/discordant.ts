/** The odds that the bets assume, as multiples of the harmless ones. */
const FACTORS = [2, 5, 20, 100] as const;

/** The number of bets on a count of pairs. */
export const DISCORDANT_BETS = FACTORS.length;

/**
 * The gains of the bets that something befalls the shadow more often than its primary, from the pairs in which it befell
 * one of the two alone: with equal replicas it is as often the one as the other (McNemar's test). At the harmless odds the
 * mean of each gain is 1; below them, less.
 */
export function discordantGains(own: number, peer: number, harmless: number): readonly number[] {
  const harmlessShare = harmless / (1 + harmless);
  return FACTORS.map((factor) => {
    const share = (harmless * factor) / (1 + harmless * factor);
    return own * Math.log(share / harmlessShare) + peer * Math.log((1 - share) / (1 - harmlessShare));
  });
}
