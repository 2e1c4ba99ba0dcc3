import type { Certainty } from '#verdict';
import { FINISHES } from '#verdict';
import { logEvidence } from '#verdict/evidence';
import { comparePairs, NO_PAIRS, type PairClaim, type PairedEvidence } from './compare-pairs.ts';
import { explainWrongPairs, toPairText } from './describe-pairs.ts';
import type { PairFigures } from './pair-figures.ts';
import { PAIR_DIMENSIONS, PAIR_TIMES, type PairDimension } from './pair-measures.ts';
import type { PairObservation } from './pair-observation.ts';

/** A shadow with fewer pairs is not called good. */
const MIN_PAIRS = 300;
/** Nor is one against which something speaks, although not yet enough. */
const SUSPICIOUS = 3;
/** How many more pairs at least then tell more. */
const MORE_PAIRS = 100;
/** What a shadow that is like its primaries usually needs: docs/evidence/shadow.md. */
const USUAL_PAIRS = 300;
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

  /** What the pairs have shown so far. Call it after each block: looking often costs nothing. */
  judge({ falseAlarm, missed }: Certainty): {
    readonly kind: 'bad' | 'good' | 'open';
    readonly wrong: readonly PairDimension[];
  } {
    const bound = Math.log(PAIR_DIMENSIONS.length / falseAlarm);
    const wrong = PAIR_DIMENSIONS.filter((dimension) => this.#logEvidenceOf(dimension) >= bound);
    if (wrong.length > 0) return { kind: 'bad', wrong };
    const fine = this.#fineEvidences();
    const isFine = fine.length > 0 && fine.every((each) => each >= Math.log(1 / missed));
    const isGood = isFine && this.pairs >= MIN_PAIRS && !this.#isSuspicious();
    return { kind: isGood ? 'good' : 'open', wrong };
  }

  /** About how many further pairs are needed until it is good; null: more of the same may not tell. */
  pairsNeeded({ missed }: Pick<Certainty, 'missed'>): number | null {
    const { pairs } = this;
    const least = Math.max(this.#isSuspicious() ? MORE_PAIRS : 0, MIN_PAIRS - pairs);
    const fine = this.#fineEvidences();
    if (pairs < FEW_PAIRS || fine.length === 0) return Math.max(least, USUAL_PAIRS - pairs, 1);
    const bound = Math.log(1 / missed);
    const open = fine.filter((each) => each < bound);
    if (open.some((each) => each <= 0)) return null;
    return Math.max(least, ...open.map((each) => Math.ceil((pairs * (bound - each)) / each)));
  }

  /** Says what is wrong, each with its figures. */
  explain(wrong: readonly PairDimension[]): string {
    return explainWrongPairs(this.figures, wrong);
  }

  /** The figures that people follow, in few words. `waiting`: how many pairs there are beyond those that were compared. */
  toText(waiting: number): string {
    return toPairText(this.figures, waiting);
  }

  #isSuspicious(): boolean {
    return PAIR_DIMENSIONS.some((dimension) => this.#logEvidenceOf(dimension) >= Math.log(SUSPICIOUS));
  }

  #fineEvidences(): readonly number[] {
    return PAIR_TIMES.flatMap((time) => {
      const of = this.#known.evidence[`fine_${time}`];
      return of === undefined ? [] : [logEvidence(of)];
    });
  }

  /** The logarithm of the evidence that a dimension is wrong. A claim without evidence counts as 1. */
  #logEvidenceOf(dimension: PairDimension): number {
    const claims = CLAIMS[dimension].map((claim) => {
      const of = this.#known.evidence[claim];
      return of === undefined ? 0 : logEvidence(of);
    });
    const highest = Math.max(...claims);
    return (
      highest + Math.log(claims.reduce((sum, each) => sum + Math.exp(each - highest), 0) / claims.length)
    );
  }
}
