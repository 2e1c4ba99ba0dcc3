import type { Block, Observation } from '#verdict/blocks';
import type { Pair } from './rank-difference.ts';
import type { Measure } from './strata.ts';

/** A mean of differences between groups of like requests, with the weight of what it was made from. */
interface WeightedMean {
  readonly sum: number;
  readonly weight: number;
}

/** What a comparison shows to people. */
export interface Figures {
  /** The mean difference of the medians' logarithms by measure; of `cached`, of the mean shares. */
  readonly differences: Readonly<Partial<Record<Measure, WeightedMean>>>;
  readonly own: Tally;
  readonly peers: Tally;
}

/** What is counted of the requests of one side. */
interface Tally {
  /** Requests that show something about the replica. */
  readonly answered: number;
  readonly errors: number;
  /** By finish reason. */
  readonly finishes: Readonly<Record<string, number>>;
}

const NO_TALLY: Tally = { answered: 0, errors: 0, finishes: {} };

/** The figures before the first request. */
export const NO_FIGURES: Figures = { differences: {}, own: NO_TALLY, peers: NO_TALLY };

/** The figures after one more block, whose values are in pairs. */
export function addFigures(
  before: Figures,
  { own, peers }: Block,
  pairs: readonly (readonly [Measure, readonly Pair[]])[],
): Figures {
  const differences: Partial<Record<Measure, WeightedMean>> = { ...before.differences };
  for (const [measure, groups] of pairs) {
    let { sum, weight } = differences[measure] ?? { sum: 0, weight: 0 };
    for (const pair of groups) {
      const pairWeight = (pair.own.length * pair.peers.length) / (pair.own.length + pair.peers.length);
      sum += pairWeight * (centreOf(measure, pair.own) - centreOf(measure, pair.peers));
      weight += pairWeight;
    }
    if (weight > 0) differences[measure] = { sum, weight };
  }
  return { differences, own: addTally(before.own, own), peers: addTally(before.peers, peers) };
}

/** The figures of two comparisons by different requests. */
export function joinFigures(one: Figures, other: Figures): Figures {
  const differences: Partial<Record<Measure, WeightedMean>> = { ...one.differences };
  for (const [measure, mean] of Object.entries(other.differences) as [Measure, WeightedMean][]) {
    const { sum, weight } = differences[measure] ?? { sum: 0, weight: 0 };
    differences[measure] = { sum: sum + mean.sum, weight: weight + mean.weight };
  }
  return { differences, own: joinTallies(one.own, other.own), peers: joinTallies(one.peers, other.peers) };
}

function joinTallies(one: Tally, other: Tally): Tally {
  const finishes: Record<string, number> = { ...one.finishes };
  for (const [finish, count] of Object.entries(other.finishes))
    finishes[finish] = (finishes[finish] ?? 0) + count;
  return { answered: one.answered + other.answered, errors: one.errors + other.errors, finishes };
}

/** How many times the peers' value the replica's own is, of like requests; of `cached` the difference. Null: unknown. */
export function differenceOf({ differences }: Figures, measure: Measure): number | null {
  const mean = differences[measure];
  if (mean === undefined) return null;
  const difference = mean.sum / mean.weight;
  return measure === 'cached' ? difference : Math.exp(difference);
}

/** The mean of shares; the logarithm of the median of what has a long tail, at either end. The values are sorted. */
function centreOf(measure: Measure, values: Float64Array): number {
  if (measure === 'cached') return values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = (values.length - 1) / 2;
  const median = ((values[Math.floor(middle)] ?? 0) + (values[Math.ceil(middle)] ?? 0)) / 2;
  // A completion may have no token.
  return Math.log(Math.max(median, 1));
}

function addTally({ answered, errors, finishes }: Tally, observations: readonly Observation[]): Tally {
  const counts: Record<string, number> = { ...finishes };
  let seen = answered;
  let failed = errors;
  for (const { outcome, finish } of observations) {
    if (outcome !== 'unclear') seen++;
    if (outcome === 'error') failed++;
    if (outcome === 'ok' && finish !== null) counts[finish] = (counts[finish] ?? 0) + 1;
  }
  return { answered: seen, errors: failed, finishes: counts };
}
