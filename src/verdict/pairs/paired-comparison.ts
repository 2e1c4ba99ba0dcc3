import { FINISHES } from '#verdict';
import { type Certainty, type Judgement, type JudgeRule, judge } from '#verdict/judgement';
import { comparePairs, NO_PAIRS, type PairClaim, type PairedEvidence } from './compare-pairs.ts';
import { explainWrongPairs, toPairText } from './describe-pairs.ts';
import type { PairFigures } from './pair-figures.ts';
import { PAIR_DIMENSIONS, PAIR_TIMES, type PairDimension } from './pair-measures.ts';
import type { PairObservation } from './pair-observation.ts';

const RULE: JudgeRule = {
  dimensions: PAIR_DIMENSIONS.length,
  least: 300,
  // docs/evidence/shadow.md.
  usual: 300,
  moreIfSuspicious: 100,
};

/** The evidence of fewer pairs says little about how it goes on. */
const FEW_PAIRS = 50;

/** The claims of each dimension. Its evidence is their mean. */
const CLAIMS: Readonly<Record<PairDimension, readonly PairClaim[]>> = {
  first_token: ['slow_first_token'],
  gaps: ['slow_gaps'],
  duration: ['slow_duration'],
  lengths: ['longer', 'shorter'],
  errors: ['errors'],
  finish_reasons: FINISHES.flatMap((finish) => [`more_${finish}`, `fewer_${finish}`] as const),
  tool_calls: ['more_tools', 'fewer_tools', 'broken_tools'],
  outputs: ['other_outputs'],
};

/** The comparison of shadows with the replicas that served the same requests, block after block. */
export class PairedComparison {
  readonly #tolerance: number;
  #known: PairedEvidence = NO_PAIRS;

  /** `tolerance`: how many times as slow as its primary a shadow may be: 1.01. */
  constructor(tolerance: number) {
    this.#tolerance = tolerance;
  }

  get pairs(): number {
    return this.#known.pairs;
  }

  get figures(): PairFigures {
    return this.#known.figures;
  }

  /** Adds pairs that ended at about the same time. */
  addBlock(block: readonly PairObservation[]): void {
    this.#known = comparePairs(this.#known, block, this.#tolerance);
  }

  /** What the pairs have shown so far. */
  judge(certainty: Certainty): Judgement<PairDimension> {
    const { evidence, pairs } = this.#known;
    const findings = {
      count: pairs,
      isEarly: pairs < FEW_PAIRS,
      fine: PAIR_TIMES.map((time) => evidence[`fine_${time}`]),
      claims: new Map(PAIR_DIMENSIONS.map((each) => [each, CLAIMS[each].map((claim) => evidence[claim])])),
    };
    return judge(findings, RULE, certainty);
  }

  /** Says what is wrong, each with its figures. */
  explain(wrong: readonly PairDimension[]): string {
    return explainWrongPairs(this.figures, wrong);
  }

  /** The figures that people follow, in few words. `waiting`: how many pairs there are beyond those that were compared. */
  toText(waiting: number): string {
    return toPairText(this.figures, waiting);
  }
}
