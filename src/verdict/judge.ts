import { type Certainty, type Judgement, type JudgeRule, judge } from '#verdict/judgement';
import { type Claim, type Comparison, FINISHES, TIMES } from './comparison.ts';

/** What can be wrong with a replica. */
export const DIMENSIONS = [
  'first_token',
  'gaps',
  'duration',
  'lengths',
  'cached',
  'errors',
  'finish_reasons',
] as const;

export type Dimension = (typeof DIMENSIONS)[number];

/** How sure a verdict must be, and by what. */
export interface JudgeSettings extends Certainty {
  /** Whether both sides get the same kinds of prompts. If not, what depends on them says nothing about a replica. */
  readonly sharesPrompts: boolean;
}

/** The dimensions that do not depend on the content of prompts. */
const NOT_BY_CONTENT: readonly Dimension[] = ['first_token', 'gaps', 'duration', 'errors'];

const RULE: JudgeRule = {
  dimensions: DIMENSIONS.length,
  least: 100,
  // docs/evidence/verdict.md.
  usual: 600,
  moreIfSuspicious: 0,
};

/** The evidence of fewer blocks says little about how it goes on. */
const FEW_BLOCKS = 5;

/** The claims of each dimension. Its evidence is their mean. */
const CLAIMS: Readonly<Record<Dimension, readonly Claim[]>> = {
  first_token: ['slow_first_token'],
  gaps: ['slow_gaps'],
  duration: ['slow_duration'],
  lengths: ['longer', 'shorter'],
  cached: ['less_cached'],
  errors: ['errors'],
  finish_reasons: FINISHES.flatMap((finish) => [`more_${finish}`, `fewer_${finish}`] as const),
};

/** Judges a comparison. */
export function judgeComparison(
  { evidence, own, blocks }: Comparison,
  { sharesPrompts, ...certainty }: JudgeSettings,
): Judgement<Dimension> {
  const judged = sharesPrompts ? DIMENSIONS : NOT_BY_CONTENT;
  const findings = {
    count: own,
    isEarly: blocks < FEW_BLOCKS,
    fine: TIMES.map((time) => evidence[`fine_${time}`]),
    claims: new Map(judged.map((each) => [each, CLAIMS[each].map((claim) => evidence[claim])])),
  };
  return judge(findings, RULE, certainty);
}
