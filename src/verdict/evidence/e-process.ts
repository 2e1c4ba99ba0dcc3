/**
 * Evidence that grows while it is looked at. If the hypothesis holds, the evidence reaches a bound with a probability of
 * at most 1 / bound, however often one looks (Ville's inequality): see docs/evidence/verdict.md.
 *
 * It is the mean of several bets, each of which multiplies its stake at each step. Stakes are kept as logarithms.
 */
export type Evidence = readonly number[];

/**
 * The evidence of claims after a step in which each bet on one gained this factor, given as its logarithm. A claim without
 * evidence begins with it.
 */
export function withGains<C extends string>(
  evidence: Readonly<Partial<Record<C, Evidence>>>,
  gains: ReadonlyMap<C, readonly number[]>,
): Readonly<Partial<Record<C, Evidence>>> {
  const after: Partial<Record<C, Evidence>> = { ...evidence };
  for (const [claim, logGains] of gains)
    after[claim] = logGains.map((gain, bet) => (evidence[claim]?.[bet] ?? 0) + gain);
  return after;
}

/**
 * Evidence that something has begun at some time, before it began: one more stake is bet in each step. If nothing has
 * begun in n steps, it has reached a bound with a probability of at most n / bound, for every n (the Shiryaev–Roberts
 * e-detector of Shin, Ramdas and Rinaldo 2023). `logStake`: what is bet at once, beyond that.
 */
export function startDetection(bets: number, logStake = Number.NEGATIVE_INFINITY): Evidence {
  return Array.from({ length: bets }, () => logStake);
}

/** The same after a step in which each bet gained this factor, given as its logarithm. */
export function withGainsSince(evidence: Evidence, logGains: readonly number[]): Evidence {
  return evidence.map((stake, bet) => {
    const highest = Math.max(stake, 0);
    return highest + Math.log(Math.exp(stake - highest) + Math.exp(-highest)) + (logGains[bet] ?? 0);
  });
}

/** The logarithm of the evidence. */
export function logEvidence(evidence: Evidence): number {
  const highest = Math.max(...evidence);
  const sum = evidence.reduce((total, stake) => total + Math.exp(stake - highest), 0);
  return highest + Math.log(sum / evidence.length);
}

/** How far the mean of a standardized difference may be from zero, as each bet assumes it. */
const DRIFTS = [0.25, 0.5, 1, 2, 4] as const;

/** The number of bets on a symmetric difference. */
export const SYMMETRIC_BETS = DRIFTS.length;

/**
 * The gains of the bets that a difference is above zero. If its distribution is symmetric about zero, given all that
 * was before, the mean of 1 + tanh(d·z) is 1 for every d, whatever its tails and its variance are. It is the likelihood
 * ratio of a normal difference with the mean d against its mirrored mixture.
 */
export function symmetricGains(z: number): readonly number[] {
  // 1 + tanh(x) = 2 / (1 + exp(−2x)), without the loss of digits near −1.
  return DRIFTS.map((drift) => Math.LN2 - Math.log1p(Math.exp(-2 * drift * z)));
}
