import type { RegisteredReplica } from '#replicas/registry';
import type { Certainty } from '#verdict/judgement';
import { type PairFigures, ratioAt, type SideTally, toRatioList } from '#verdict/pairs';
import { findWrongByItself, type JudgeSurroundings, toVerdict, type Verdict } from '../judge/judge-groups.ts';
import type { RunningPairs } from './running-pairs.ts';

/** What pairs show, for a report. Null where nothing is known. */
export interface PairsReport {
  readonly ratios: Readonly<Record<string, RatioReport>>;
  readonly outputs: {
    readonly compared: number;
    readonly equal: number;
    /** How often they part after 0, 1, 2 to 3, 4 to 7, … tokens. */
    readonly parts_after: readonly number[];
    readonly again: PairFigures['outputs']['again'];
  };
  readonly tool_calls: PairFigures['tools'];
  /** Pairs beyond those that were compared. */
  readonly waiting: number;
  /** Requests that were not copied since the candidate is a shadow, by reason. */
  readonly skipped: Readonly<Record<string, number>>;
  readonly currency: string;
  readonly candidate: SideReport;
  readonly baseline: SideReport;
}

/** The ratios of one measure: of the shadow's value to that of its primary, in the same request. */
export interface RatioReport {
  readonly p10: number;
  readonly median: number;
  readonly p90: number;
  /** How often each ratio came, in steps of 1 %. */
  readonly counts: readonly (readonly [ratio: number, count: number])[];
}

/** The answers of one side. */
export interface SideReport {
  readonly errors: number;
  readonly finishes: Readonly<Record<string, number>>;
  readonly completion_tokens: number;
  /** Requests in flight at its replicas when a pair began, on average. */
  readonly mean_inflight: number;
  /** What a million tokens of completions cost, by the prices and the time that they took; null without prices or tokens. */
  readonly cost_per_million: number | null;
}

/** Judges shadows by their pairs. */
export function judgePairs(
  { comparison, silentOnes, waiting }: RunningPairs,
  surroundings: JudgeSurroundings,
  certainty: Certainty,
): Verdict {
  const known = {
    summary: comparison.toText(waiting),
    requests: comparison.pairs,
    baselineRequests: comparison.pairs,
    figures: toFigures(comparison.figures),
  };
  const itself = findWrongByItself(() => silentOnes(surroundings.moment.groups), surroundings);
  if (itself !== null) return { ...known, ...itself, verdict: 'bad', requestsNeeded: null };
  const judgement = comparison.judge(certainty);
  const why = `${comparison.explain(judgement.wrong)} (${known.requests} pairs)`;
  return toVerdict(known, judgement, { peers: 'what clients get', why, more: 'more pairs' });
}

function toFigures({ ratios, own, peer }: PairFigures): Verdict['figures'] {
  const known = {
    first_token_ratio: ratioAt(ratios.first_token, 0.5),
    gaps_ratio: ratioAt(ratios.gaps, 0.5),
    duration_ratio: ratioAt(ratios.duration, 0.5),
    lengths_ratio: ratioAt(ratios.lengths, 0.5),
    error_share: own.answers === 0 ? null : own.errors / own.answers,
    peer_error_share: peer.answers === 0 ? null : peer.errors / peer.answers,
  };
  const entries = Object.entries(known).filter((entry): entry is [string, number] => entry[1] !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, round(value)]));
}

/** What the pairs show, for a report. The replicas: those of each side, for their prices. */
export function toPairsReport(
  { comparison: { figures }, skipsOf, waiting }: RunningPairs,
  replicas: Readonly<Record<'candidate' | 'baseline', readonly RegisteredReplica[]>> & {
    readonly currency: string;
  },
): PairsReport {
  const { compared, equal, partsAfter, again } = figures.outputs;
  const ratios = Object.entries(figures.ratios).flatMap(([measure, counts]) => {
    const [p10, median, p90] = [0.1, 0.5, 0.9].map((share) => ratioAt(counts, share));
    if (p10 == null || median == null || p90 == null) return [];
    const shown = { p10: round(p10), median: round(median), p90: round(p90), counts: toRatioList(counts) };
    return [[measure, shown] as const];
  });
  return {
    ratios: Object.fromEntries(ratios),
    outputs: { compared, equal, parts_after: partsAfter, again },
    tool_calls: figures.tools,
    waiting,
    skipped: skipsOf(replicas.candidate.map(({ name }) => name)),
    currency: replicas.currency,
    candidate: toSide(figures.own, replicas.candidate),
    baseline: toSide(figures.peer, replicas.baseline),
  };
}

function toSide(side: SideTally, replicas: readonly RegisteredReplica[]): SideReport {
  const { answers, errors, finishes, completionTokens, busySeconds, inflight } = side;
  const prices = replicas.map(({ config: { gpuCount, gpuHourPrice } }) =>
    gpuCount === null || gpuHourPrice === null ? Number.NaN : gpuCount * gpuHourPrice,
  );
  const pricePerHour = prices.reduce((sum, price) => sum + price, 0) / prices.length;
  // Not a finite number if a price is not known, or there is no replica or no token.
  const cost = ((pricePerHour * busySeconds) / 3600 / completionTokens) * 1e6;
  return {
    errors,
    finishes,
    completion_tokens: completionTokens,
    mean_inflight: answers === 0 ? 0 : round(inflight / answers),
    cost_per_million: Number.isFinite(cost) ? round(cost) : null,
  };
}

function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
