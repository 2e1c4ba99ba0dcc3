import type { Block, Observation } from '#verdict/blocks';
import { type Evidence, SYMMETRIC_BETS, symmetricGains, withGains } from '#verdict/evidence';
import { COUNT_BETS, type Counts, countGains } from './count-difference.ts';
import { addFigures, type Figures, joinFigures, NO_FIGURES } from './figures.ts';
import { rankDifference } from './rank-difference.ts';
import { kindOf, MEASURES, type Measure, toPairs } from './strata.ts';

/** The measures that are times. */
export const TIMES = ['first_token', 'gaps', 'duration'] as const satisfies readonly Measure[];

/** How much slower a replica may be without being called slow. */
const HARMLESS_SLOWNESS = 1.05;

/** A replica counts as fine when this slowness is ruled out. */
const RULED_OUT_SLOWNESS = 1.2;

/** How much longer or shorter completions may be. */
const HARMLESS_LENGTH = 1.15;
/** How much smaller the cached share of prompts may be. */
const HARMLESS_CACHED = 0.1;
/** The odds of an error, or of a finish reason, may be this many times those of the peers. */
const HARMLESS_ODDS = 1.5;

/** The finish reasons that are compared. Any other counts as `other`. */
export const FINISHES = ['stop', 'length', 'tool_calls', 'content_filter', 'other'] as const;

/** What the evidence is for. `fine_…`: that the replica is less than 20 % slower. */
export type Claim =
  | `slow_${(typeof TIMES)[number]}`
  | `fine_${(typeof TIMES)[number]}`
  | 'longer'
  | 'shorter'
  | 'less_cached'
  | 'errors'
  | `more_${(typeof FINISHES)[number]}`
  | `fewer_${(typeof FINISHES)[number]}`;

/** How many bets the evidence of each claim has. */
export const BETS: ReadonlyMap<string, number> = new Map<Claim, number>([
  ...TIMES.flatMap((time) => [`slow_${time}`, `fine_${time}`] as const).map(
    (claim) => [claim, SYMMETRIC_BETS] as const,
  ),
  ...(['longer', 'shorter', 'less_cached'] as const).map((claim) => [claim, SYMMETRIC_BETS] as const),
  ...FINISHES.flatMap((finish) => [`more_${finish}`, `fewer_${finish}`] as const).map(
    (claim) => [claim, COUNT_BETS] as const,
  ),
  ['errors', COUNT_BETS],
]);

/** All that a comparison knows. */
export interface Comparison {
  readonly evidence: Readonly<Partial<Record<Claim, Evidence>>>;
  readonly figures: Figures;
  readonly blocks: number;
  /** The requests of the replica, and those of its peers. */
  readonly own: number;
  readonly peers: number;
}

/** The comparison before the first request. */
export const EMPTY_COMPARISON: Comparison = {
  evidence: {},
  figures: NO_FIGURES,
  blocks: 0,
  own: 0,
  peers: 0,
};

/**
 * The comparison after one more block. `comparesTimes`: whether times, lengths and the cache count already; while a
 * replica warms up, only errors and finish reasons do.
 */
export function compareBlock(
  before: Comparison,
  block: Block,
  {
    comparesTimes,
    harmlessSlowness = HARMLESS_SLOWNESS,
  }: { readonly comparesTimes: boolean; readonly harmlessSlowness?: number },
): Comparison {
  const gains = new Map<Claim, readonly number[]>();
  const pairs = comparesTimes
    ? MEASURES.map((measure) => [measure, toPairs(measure, block.own, block.peers)] as const)
    : [];
  for (const [measure, groups] of pairs) {
    const note = (claim: Claim, direction: 1 | -1, change: { scale?: number; shift?: number }) => {
      const z = rankDifference(groups, change);
      if (z !== null) gains.set(claim, symmetricGains(direction * z));
    };
    if (measure === 'lengths') {
      note('longer', 1, { scale: 1 / HARMLESS_LENGTH });
      note('shorter', -1, { scale: HARMLESS_LENGTH });
    } else if (measure === 'cached') note('less_cached', -1, { shift: HARMLESS_CACHED });
    else {
      note(`slow_${measure}`, 1, { scale: 1 / harmlessSlowness });
      note(`fine_${measure}`, -1, { scale: 1 / RULED_OUT_SLOWNESS });
    }
  }
  const kinds = byKind(block);
  gains.set('errors', errorGains(kinds));
  for (const finish of FINISHES) {
    const counts = kinds.map((kind) => countWhere(kind, hasFinish, (each) => toFinish(each) === finish));
    gains.set(`more_${finish}`, sumGains(counts));
    gains.set(`fewer_${finish}`, sumGains(counts.map(toComplement)));
  }
  return {
    evidence: withGains(before.evidence, gains),
    figures: addFigures(before.figures, block, pairs),
    blocks: before.blocks + 1,
    own: before.own + block.own.length,
    peers: before.peers + block.peers.length,
  };
}

/**
 * What two comparisons of the same replicas by different requests know together, as if one had seen the blocks of both:
 * stakes multiply, so that their logarithms add up, and it is as sure as each of them.
 */
export function joinComparisons(one: Comparison, other: Comparison): Comparison {
  return {
    evidence: withGains(one.evidence, new Map(Object.entries(other.evidence) as [Claim, Evidence][])),
    figures: joinFigures(one.figures, other.figures),
    blocks: one.blocks + other.blocks,
    own: one.own + other.own,
    peers: one.peers + other.peers,
  };
}

/** The gains of the bets that the replica fails more of its requests than its peers do. */
export function errorGains(kinds: readonly Block[]): readonly number[] {
  return sumGains(kinds.map((kind) => countWhere(kind, isAnswered, isError)));
}

/** The block in groups of comparable requests. */
export function byKind({ own, peers }: Block): readonly Block[] {
  const kinds = new Map<string, { readonly own: Observation[]; readonly peers: Observation[] }>();
  for (const observation of own) {
    const kind = kindOf(observation);
    const group = kinds.get(kind) ?? { own: [], peers: [] };
    kinds.set(kind, group);
    group.own.push(observation);
  }
  for (const observation of peers) kinds.get(kindOf(observation))?.peers.push(observation);
  return [...kinds.values()];
}

/** The gains of all groups together: given the groups, each is a bet of its own. */
function sumGains(groups: readonly Counts[]): readonly number[] {
  const gains = groups.map((counts) => countGains(counts, HARMLESS_ODDS));
  return Array.from({ length: COUNT_BETS }, (_, bet) =>
    gains.reduce((sum, each) => sum + (each[bet] ?? 0), 0),
  );
}

function countWhere(
  { own, peers }: Block,
  counts: (observation: Observation) => boolean,
  is: (observation: Observation) => boolean,
): Counts {
  const ofOwn = own.filter(counts);
  const ofPeers = peers.filter(counts);
  return {
    own: ofOwn.filter(is).length,
    ownTotal: ofOwn.length,
    peers: ofPeers.filter(is).length,
    peersTotal: ofPeers.length,
  };
}

/** How often it did not happen. */
function toComplement({ own, ownTotal, peers, peersTotal }: Counts): Counts {
  return { own: ownTotal - own, ownTotal, peers: peersTotal - peers, peersTotal };
}

/** Whether it shows something about the replica. */
function isAnswered({ outcome }: Observation): boolean {
  return outcome !== 'unclear';
}

/** Whether the replica failed it. */
function isError({ outcome }: Observation): boolean {
  return outcome === 'error';
}

function hasFinish({ outcome, finish }: Observation): boolean {
  return outcome === 'ok' && finish !== null;
}

/** The finish reason as it is compared. */
function toFinish({ finish }: Observation): (typeof FINISHES)[number] {
  return FINISHES.find((known) => known === finish) ?? 'other';
}
