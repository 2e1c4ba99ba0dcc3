import { FINISHES, percent, toFinishText } from '#verdict';
import { type Certainty, type Judgement, type JudgeRule, judge } from '#verdict/judgement';
import { comparePairs, NO_PAIRS, type PairClaim, type PairedEvidence } from './compare-pairs.ts';
import { ratioAt } from './histogram.ts';
import type { PairFigures, SideTally } from './pair-figures.ts';
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

/** The figures that people follow, in few words: `first token ×1.02, gaps ×0.99, 98 % of outputs equal, 412 pairs`. */
function toPairText({ ratios, own, peer, outputs }: PairFigures, waiting: number): string {
  if (own.answers === 0 && waiting === 0) return 'no pairs';
  if (own.answers === 0) return `${waiting} ${waiting === 1 ? 'pair' : 'pairs'}, too few to compare`;
  const ratio = (words: string, measure: keyof PairFigures['ratios']) => {
    const value = ratioAt(ratios[measure], 0.5);
    return value === null ? [] : [`${words} ×${value.toFixed(2)}`];
  };
  return [
    ...ratio('first token', 'first_token'),
    ...ratio('gaps', 'gaps'),
    ...ratio('duration', 'duration'),
    ...(outputs.compared === 0 ? [] : [`${percent(outputs.equal / outputs.compared)} of outputs equal`]),
    `${percent(own.errors / own.answers)} errors`,
    ...toLoadText(own, peer),
    `${own.answers} pairs`,
  ].join(', ');
}

/** A shadow with less to do is faster for that reason alone. */
function toLoadText(own: SideTally, peer: SideTally): readonly string[] {
  if (peer.inflight === 0) return [];
  return [`${(own.inflight / peer.inflight).toFixed(2)} of their load`];
}

/** Says what is wrong, each with its figures. */
function explainWrongPairs(figures: PairFigures, wrong: readonly PairDimension[]): string {
  return wrong.map((dimension) => toText(figures, dimension)).join('; ');
}

function toText(figures: PairFigures, dimension: PairDimension): string {
  const { ratios, own, peer, outputs, tools } = figures;
  switch (dimension) {
    case 'first_token':
      return `first token ${compared(ratioAt(ratios.first_token, 0.5), 'later', 'sooner')}`;
    case 'gaps':
      return `gaps ${compared(ratioAt(ratios.gaps, 0.5), 'longer', 'shorter')}`;
    case 'duration':
      return `responses ${compared(ratioAt(ratios.duration, 0.5), 'slower', 'faster')}`;
    case 'lengths':
      return `completions ${compared(own.completionTokens / Math.max(1, peer.completionTokens), 'longer', 'shorter')}`;
    case 'errors':
      return `${shareOf(own.errors, own)} of answers fail (primaries ${shareOf(peer.errors, peer)})`;
    case 'finish_reasons':
      return `other finish reasons: ${toFinishText(own, peer, 'primaries')}`;
    case 'tool_calls':
      return `${tools.compared - tools.same} of ${tools.compared} calls of tools have another shape`;
    case 'outputs':
      return `${outputs.compared - outputs.equal} of ${outputs.compared} outputs differ, and the shadow repeats its own`;
  }
}

function compared(ratio: number | null, more: string, less: string): string {
  if (ratio === null) return 'unlike those of its primaries';
  return `${percent(Math.abs(ratio - 1))} ${ratio >= 1 ? more : less}`;
}

function shareOf(count: number, { answers }: SideTally): string {
  return percent(count / Math.max(1, answers));
}
