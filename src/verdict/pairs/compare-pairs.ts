import { FINISHES } from '#verdict';
import { type Evidence, symmetricGains, withGains } from '#verdict/evidence';
import { addPairFigures, NO_PAIR_FIGURES, type PairFigures } from './pair-figures.ts';
import { logRatioOf, PAIR_TIMES } from './pair-measures.ts';
import type { PairObservation, PairSide } from './pair-observation.ts';

/** What the evidence is for. `fine_…`: that the shadow is not so much slower as to matter. */
export type PairClaim =
  | `slow_${(typeof PAIR_TIMES)[number]}`
  | `fine_${(typeof PAIR_TIMES)[number]}`
  | 'longer'
  | 'shorter'
  | 'errors'
  | `more_${(typeof FINISHES)[number]}`
  | `fewer_${(typeof FINISHES)[number]}`
  | 'more_tools'
  | 'fewer_tools'
  | 'broken_tools'
  | 'other_outputs';

/** All that a comparison of pairs knows. */
export interface PairedEvidence {
  readonly evidence: Readonly<Partial<Record<PairClaim, Evidence>>>;
  readonly figures: PairFigures;
  readonly pairs: number;
}

export const NO_PAIRS: PairedEvidence = { evidence: {}, figures: NO_PAIR_FIGURES, pairs: 0 };

/** By how much more than the tolerance a shadow must not be slower to count as good. */
const RULED_OUT_MARGIN = 0.04;

/** How much longer or shorter completions may be. */
const HARMLESS_LENGTH = 1.02;

/** How much more often than its primary alone it may befall the shadow alone. */
const HARMLESS_ODDS = 1.5;

/** The same for outputs that the shadow repeats, beside those that it does not: with equal replicas it is as often so as so. */
const HARMLESS_OUTPUT_ODDS = 1.1;

/** The evidence after one more block of pairs. `tolerance`: how many times as slow as its primary a shadow may be. */
export function comparePairs(
  before: PairedEvidence,
  block: readonly PairObservation[],
  tolerance: number,
): PairedEvidence {
  const gains = new Map<PairClaim, readonly number[]>();
  const note = (claim: PairClaim, logs: readonly number[], direction: 1 | -1, bound: number) => {
    const z = signedRank(logs.map((log) => direction * (log - Math.log(bound))));
    if (z !== null) gains.set(claim, symmetricGains(z));
  };
  for (const time of PAIR_TIMES) {
    const logs = block.flatMap((pair) => logRatioOf(time, pair) ?? []);
    note(`slow_${time}`, logs, 1, tolerance);
    note(`fine_${time}`, logs, -1, tolerance + RULED_OUT_MARGIN);
  }
  // Equal lengths, which are the rule where the output is the same each time, say nothing here.
  const lengths = block.flatMap((pair) => logRatioOf('lengths', pair) ?? []).filter((log) => log !== 0);
  note('longer', lengths, 1, HARMLESS_LENGTH);
  note('shorter', lengths, -1, 1 / HARMLESS_LENGTH);

  const count = (claim: PairClaim, befalls: (side: PairSide) => boolean, among = areOk) => {
    const pairs = block.filter(among);
    const own = pairs.filter((pair) => befalls(pair.own) && !befalls(pair.peer)).length;
    const peer = pairs.filter((pair) => befalls(pair.peer) && !befalls(pair.own)).length;
    if (own + peer > 0) gains.set(claim, discordantGains(own, peer, HARMLESS_ODDS));
  };
  count('errors', ({ outcome }) => outcome === 'error', areClear);
  for (const finish of FINISHES) {
    count(`more_${finish}`, (side) => toFinish(side) === finish, haveFinish);
    count(`fewer_${finish}`, (side) => toFinish(side) !== finish, haveFinish);
  }
  count('more_tools', ({ tools }) => tools !== 'none');
  count('fewer_tools', ({ tools }) => tools === 'none');
  count('broken_tools', ({ tools }) => tools === 'broken');
  const [asShadow, asPrimary] = (['as_shadow', 'as_primary'] as const).map(
    (again) => block.filter(({ output }) => output?.again === again).length,
  );
  if (asShadow || asPrimary)
    gains.set('other_outputs', discordantGains(asShadow ?? 0, asPrimary ?? 0, HARMLESS_OUTPUT_ODDS));
  return {
    evidence: withGains(before.evidence, gains),
    figures: addPairFigures(before.figures, block),
    pairs: before.pairs + block.length,
  };
}

function areOk({ own, peer }: PairObservation): boolean {
  return own.outcome === 'ok' && peer.outcome === 'ok';
}

function areClear({ own, peer }: PairObservation): boolean {
  return own.outcome !== 'unclear' && peer.outcome !== 'unclear';
}

function haveFinish(pair: PairObservation): boolean {
  return areOk(pair) && pair.own.finish !== null && pair.peer.finish !== null;
}

/** The finish reason as it is compared. */
function toFinish({ finish }: PairSide): (typeof FINISHES)[number] {
  return FINISHES.find((known) => known === finish) ?? 'other';
}

/** The odds that the bets assume, as multiples of the harmless ones. */
const FACTORS = [2, 5, 20, 100] as const;

/**
 * The gains of the bets that something befalls the shadow more often than its primary, from the pairs in which it befell
 * one of the two alone: with equal replicas it is as often the one as the other (McNemar's test). At the harmless odds the
 * mean of each gain is 1; below them, less.
 */
function discordantGains(own: number, peer: number, harmless: number): readonly number[] {
  const harmlessShare = harmless / (1 + harmless);
  return FACTORS.map((factor) => {
    const share = (harmless * factor) / (1 + harmless * factor);
    return own * Math.log(share / harmlessShare) + peer * Math.log((1 - share) / (1 - harmlessShare));
  });
}

/**
 * The standardized sum of the ranks of differences, each with its sign (Wilcoxon's signed-rank test): positive if they are
 * above zero. If a difference is as likely as its opposite, it is symmetric about zero. Ranks do not see how long a tail
 * is. Null: no difference is other than zero.
 */
function signedRank(differences: readonly number[]): number | null {
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
