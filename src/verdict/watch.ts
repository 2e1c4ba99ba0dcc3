import { type Block, MIN_BLOCK_MS } from '#verdict/blocks';
import {
  type Evidence,
  logEvidence,
  SYMMETRIC_BETS,
  startDetection,
  symmetricGains,
  withGainsSince,
} from '#verdict/evidence';
import { byKind, errorGains, TIMES } from './comparison.ts';
import { COUNT_BETS } from './count-difference.ts';
import { toWrongText } from './describe.ts';
import { addFigures, type Figures, NO_FIGURES } from './figures.ts';
import { rankDifference } from './rank-difference.ts';
import { toPairs } from './strata.ts';

/** What a watch can find wrong with a replica, at any time of its life. */
const WATCHED = [...TIMES, 'errors'] as const;

/** One of WATCHED. */
export type WatchedDimension = (typeof WATCHED)[number];

/** All that a watch over one replica knows. */
interface Watch {
  readonly evidence: Readonly<Partial<Record<WatchedDimension, Evidence>>>;
  /** What is bet at once on each dimension: its logarithm. */
  readonly logStake: number;
  /** The figures since the evidence was last small, and of how many requests of the replica they are. */
  readonly figures: Figures;
  readonly own: number;
}

/** The probability with which a replica that is like its peers is found bad within a day. */
export const FALSE_ALARMS_PER_DAY = 1 / 1_000;

/** The probability with which a replica on probation that is like its peers is found bad at once. */
const FALSE_ALARMS_PER_PROBATION = 1 / 1_000;

const MAX_BLOCKS_PER_DAY = (24 * 3_600_000) / MIN_BLOCK_MS;

/** Evidence below this is what equal replicas have now and then: the figures begin again. */
const SMALL_EVIDENCE = 10;

/** The watch over a replica of which nothing is known. */
const NEW_WATCH: Watch = {
  evidence: {},
  logStake: Number.NEGATIVE_INFINITY,
  figures: NO_FIGURES,
  own: 0,
};

/** The watch over a replica that was found bad before, which therefore takes less to be found bad again. */
const PROBATION: Watch = {
  ...NEW_WATCH,
  logStake: Math.log((MAX_BLOCKS_PER_DAY * FALSE_ALARMS_PER_PROBATION) / FALSE_ALARMS_PER_DAY),
};

/** The watch over one replica, at any time of its life: its blocks are compared with those of its peers. */
export class ReplicaWatch {
  #watch: Watch;

  /** `isProbation`: the replica was found bad before, and so takes less to be found bad again. */
  constructor({ isProbation }: { readonly isProbation: boolean }) {
    this.#watch = isProbation ? PROBATION : NEW_WATCH;
  }

  /** Of how many requests of the replica the figures are. They begin again while the evidence is small. */
  get requests(): number {
    return this.#watch.own;
  }

  /**
   * Adds a block. `tolerance`: how many times as slow as its peers a replica may be. `comparesTimes`: whether times count,
   * besides errors.
   */
  add(block: Block, settings: { readonly tolerance: number; readonly comparesTimes: boolean }): void {
    this.#watch = watchBlock(this.#watch, block, settings);
  }

  /**
   * What is wrong with the replica; empty if it is like its peers, as far as that is known. `falseAlarmsPerDay`: the
   * probability that this names an equal replica within a day.
   */
  findWrong(falseAlarmsPerDay: number = FALSE_ALARMS_PER_DAY): readonly WatchedDimension[] {
    return findWrong(this.#watch, falseAlarmsPerDay);
  }

  /** Says what is wrong, each with its figures. */
  explain(wrong: readonly WatchedDimension[]): string {
    return toWrongText(this.#watch, wrong);
  }
}

/** The watch after one more block. */
function watchBlock(
  before: Watch,
  block: Block,
  { tolerance, comparesTimes }: { readonly tolerance: number; readonly comparesTimes: boolean },
): Watch {
  const evidence: Partial<Record<WatchedDimension, Evidence>> = { ...before.evidence };
  const pairs = comparesTimes
    ? TIMES.map((measure) => [measure, toPairs(measure, block.own, block.peers)] as const)
    : [];
  for (const [measure, groups] of pairs) {
    const z = rankDifference(groups, { scale: 1 / tolerance });
    if (z === null) continue;
    const present = evidence[measure] ?? startDetection(SYMMETRIC_BETS, before.logStake);
    evidence[measure] = withGainsSince(present, symmetricGains(z));
  }
  const gains = errorGains(byKind(block));
  // Where nothing fails, nothing is learnt, and no further stake is needed.
  if (gains.some((gain) => gain !== 0)) {
    const present = evidence.errors ?? startDetection(COUNT_BETS, before.logStake);
    evidence.errors = withGainsSince(present, gains);
  }
  const isSmall = Math.max(...logEvidences(before)) < Math.log(SMALL_EVIDENCE);
  return {
    evidence,
    logStake: before.logStake,
    figures: addFigures(isSmall ? NO_FIGURES : before.figures, block, pairs),
    own: (isSmall ? 0 : before.own) + block.own.length,
  };
}

/** The dimensions whose evidence has reached the bound. */
function findWrong({ evidence }: Watch, falseAlarmsPerDay: number): readonly WatchedDimension[] {
  const bound = Math.log((WATCHED.length * MAX_BLOCKS_PER_DAY) / falseAlarmsPerDay);
  return WATCHED.filter((dimension) => {
    const of = evidence[dimension];
    return of !== undefined && logEvidence(of) >= bound;
  });
}

function logEvidences({ evidence }: Watch): readonly number[] {
  return Object.values(evidence).map(logEvidence);
}
