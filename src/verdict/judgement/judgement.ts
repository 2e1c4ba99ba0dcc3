/*
 * The rule by which evidence becomes a verdict, whether requests were compared or pairs of them.
 *
 * It never knows what was compared, nor what the dimensions are.
 */

import { type Evidence, logEvidence } from '#verdict/evidence';

/** How sure a verdict must be. */
export interface Certainty {
  /** The probability with which a replica that is like its peers may be called bad. */
  readonly falseAlarm: number;
  /** The probability with which a replica that is 20 % slower may be called good. */
  readonly missed: number;
}

/** What a comparison has shown so far. Undefined: no evidence yet. */
export interface Findings<Dimension> {
  /** The requests, or pairs, that have been compared. */
  readonly count: number;
  /** Whether they are too few to say how it goes on. */
  readonly isEarly: boolean;
  /** For each time, that it is not longer. All of them must be sure. */
  readonly fine: readonly (Evidence | undefined)[];
  /** For each dimension that is judged, the claims that it is wrong. Their mean counts; one dimension is enough. */
  readonly claims: ReadonlyMap<Dimension, readonly (Evidence | undefined)[]>;
}

/** What holds for all comparisons of a kind. */
export interface JudgeRule {
  /** How many dimensions there are, with those that are not judged. */
  readonly dimensions: number;
  /** With fewer, none is called good. */
  readonly least: number;
  /** What one that is like its peers usually needs. */
  readonly usual: number;
  /** How many more it takes where something speaks against it, although not yet enough. */
  readonly moreIfSuspicious: number;
}

/** The verdict that is to be expected, and about how many further requests, or pairs, it takes; null: it is open. */
type Outlook = { readonly verdict: 'good' | 'bad'; readonly needed: number } | null;

/** `open`: neither yet. */
export interface Judgement<Dimension> {
  readonly kind: 'bad' | 'good' | 'open';
  /** What is wrong; empty unless it is bad. */
  readonly wrong: readonly Dimension[];
  /** Null unless it is open. */
  readonly outlook: Outlook;
}

/** The logarithm of evidence that is often there by chance. */
const SUSPICIOUS = Math.log(3);

/** Judges a comparison. Call it after each block: looking often costs nothing. */
export function judge<Dimension>(
  { count, isEarly, fine, claims }: Findings<Dimension>,
  { dimensions, least, usual, moreIfSuspicious }: JudgeRule,
  { falseAlarm, missed }: Certainty,
): Judgement<Dimension> {
  const wrongBound = Math.log(dimensions / falseAlarm);
  const fineBound = Math.log(1 / missed);
  const evidence = Array.from(claims, ([dimension, each]) => {
    return {
      dimension,
      log: logEvidence(each.map((claim) => (claim === undefined ? 0 : logEvidence(claim)))),
    };
  });
  const wrong = evidence.filter(({ log }) => log >= wrongBound).map(({ dimension }) => dimension);
  if (wrong.length > 0) return { kind: 'bad', wrong, outlook: null };

  const times = fine.flatMap((time) => (time === undefined ? [] : [logEvidence(time)]));
  const worst = Math.max(...evidence.map(({ log }) => log));
  const more = Math.max(0, least - count, worst >= SUSPICIOUS ? moreIfSuspicious : 0);
  const isFine = times.length > 0 && times.every((time) => time >= fineBound);
  if (isFine && more === 0) return { kind: 'good', wrong, outlook: null };
  if (isEarly || times.length === 0) {
    return { kind: 'open', wrong, outlook: { verdict: 'good', needed: Math.max(more, usual - count, 1) } };
  }
  const remaining = (log: number, bound: number) => {
    return log > 0 ? Math.ceil((count * Math.max(0, bound - log)) / log) : Number.POSITIVE_INFINITY;
  };
  const good = Math.max(more, ...times.map((time) => remaining(time, fineBound)));
  const bad = worst >= SUSPICIOUS ? remaining(worst, wrongBound) : Number.POSITIVE_INFINITY;
  const needed = Math.min(good, bad);
  const outlook = { verdict: bad < good ? 'bad' : 'good', needed } as const;
  return { kind: 'open', wrong, outlook: needed === Number.POSITIVE_INFINITY ? null : outlook };
}

/** Says in words that follow the figures what is to be expected. */
export function toOutlookText(outlook: Outlook, more: 'more' | 'more pairs'): string {
  if (outlook === null) return `it is neither clearly good nor clearly bad, so that ${more} may not tell`;
  return `${outlook.verdict === 'bad' ? 'it looks worse; ' : ''}about ${outlook.needed} ${more} are needed`;
}
