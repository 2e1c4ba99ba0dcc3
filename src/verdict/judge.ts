import { logEvidence } from '#verdict/evidence';
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

/** What a comparison has shown so far. `open`: neither yet. */
export interface Judgement {
  readonly kind: 'bad' | 'good' | 'open';
  /** What is wrong; empty unless it is bad. */
  readonly wrong: readonly Dimension[];
}

export interface JudgeSettings {
  /** The probability with which a replica that is like its peers may be called bad. */
  readonly falseAlarm: number;
  /** The probability with which a replica that is 20 % slower may be called good. */
  readonly missed: number;
  /** The dimensions that may be wrong. The others are only shown. */
  readonly judged: readonly Dimension[];
}

/** A replica that has served fewer requests is not called good. */
const MIN_REQUESTS = 100;

/** What a replica that is like its peers usually needs: docs/evidence/verdict.md. */
const USUAL_REQUESTS = 600;

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

/** Judges a comparison. Call it after each block: looking often costs nothing. */
export function judge(comparison: Comparison, { falseAlarm, missed, judged }: JudgeSettings): Judgement {
  const bound = Math.log(DIMENSIONS.length / falseAlarm);
  const wrong = judged.filter((dimension) => logEvidenceOf(comparison, dimension) >= bound);
  if (wrong.length > 0) return { kind: 'bad', wrong };
  const fine = TIMES.flatMap((time) => comparison.evidence[`fine_${time}`] ?? []).length;
  const isFine = TIMES.every((time) => {
    const evidence = comparison.evidence[`fine_${time}`];
    return evidence === undefined || logEvidence(evidence) >= Math.log(1 / missed);
  });
  return {
    kind: fine > 0 && isFine && comparison.own >= MIN_REQUESTS ? 'good' : 'open',
    wrong: [],
  };
}

/**
 * About how many further requests of the replica are needed until it is good, if it goes on like this. Null: its times
 * are between those of its peers and 20 % longer ones, so that further requests will not tell soon.
 */
export function toRequestsNeeded({ evidence, own, blocks }: Comparison, missed: number): number | null {
  const least = Math.max(0, MIN_REQUESTS - own);
  const bound = Math.log(1 / missed);
  const known = TIMES.flatMap((time) => {
    const of = evidence[`fine_${time}`];
    return of === undefined ? [] : [logEvidence(of)];
  });
  if (blocks < FEW_BLOCKS || known.length === 0) return Math.max(least, USUAL_REQUESTS - own, 1);
  const open = known.filter((each) => each < bound);
  if (open.some((each) => each <= 0)) return null;
  return Math.max(least, ...open.map((each) => Math.ceil((own * (bound - each)) / each)));
}

/** The logarithm of the evidence that a dimension is wrong; 0 without any. */
function logEvidenceOf({ evidence }: Comparison, dimension: Dimension): number {
  const claims = CLAIMS[dimension].flatMap((claim) => {
    const of = evidence[claim];
    return of === undefined ? [] : [logEvidence(of)];
  });
  if (claims.length === 0) return 0;
  const highest = Math.max(...claims);
  const sum = claims.reduce((total, each) => total + Math.exp(each - highest), 0);
  // A claim without evidence yet counts as 1, so the mean is over all of them.
  const missing = (CLAIMS[dimension].length - claims.length) * Math.exp(-highest);
  return highest + Math.log((sum + missing) / CLAIMS[dimension].length);
}
