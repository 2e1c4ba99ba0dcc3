import { addRatios, NO_RATIOS, type RatioCounts } from './histogram.ts';
import { logRatioOf, PAIR_MEASURES, type PairMeasure } from './pair-measures.ts';
import type { PairObservation, PairSide } from './pair-observation.ts';

/** What is counted of the answers of one side. */
export interface SideTally {
  readonly answers: number;
  readonly errors: number;
  /** By finish reason. */
  readonly finishes: Readonly<Record<string, number>>;
  readonly completionTokens: number;
  /** Seconds of its replica that its answers took: of each, its duration by how many were in flight when it was sent. */
  readonly busySeconds: number;
  readonly inflight: number;
}

/** What a comparison of pairs shows to people. */
export interface PairFigures {
  readonly ratios: Readonly<Record<PairMeasure, RatioCounts>>;
  readonly own: SideTally;
  readonly peer: SideTally;
  readonly outputs: {
    readonly compared: number;
    readonly equal: number;
    /** Where they part: how often after 0, 1, 2 to 3, 4 to 7, … tokens. */
    readonly partsAfter: readonly number[];
    readonly again: Readonly<Record<'as_shadow' | 'as_primary' | 'other', number>>;
  };
  readonly tools: { readonly compared: number; readonly same: number };
}

const NO_TALLY: SideTally = {
  answers: 0,
  errors: 0,
  finishes: {},
  completionTokens: 0,
  busySeconds: 0,
  inflight: 0,
};

/** Of more than 32,768 tokens. */
const MAX_CLASS = 16;

export const NO_PAIR_FIGURES: PairFigures = {
  ratios: { first_token: NO_RATIOS, gaps: NO_RATIOS, duration: NO_RATIOS, lengths: NO_RATIOS },
  own: NO_TALLY,
  peer: NO_TALLY,
  outputs: { compared: 0, equal: 0, partsAfter: [], again: { as_shadow: 0, as_primary: 0, other: 0 } },
  tools: { compared: 0, same: 0 },
};

/** The figures after one more block. */
export function addPairFigures(before: PairFigures, block: readonly PairObservation[]): PairFigures {
  const ratios = Object.fromEntries(
    PAIR_MEASURES.map((measure) => [
      measure,
      addRatios(
        before.ratios[measure],
        block.flatMap((pair) => logRatioOf(measure, pair) ?? []),
      ),
    ]),
  ) as Record<PairMeasure, RatioCounts>;
  const tooled = block.filter(({ sameToolCalls }) => sameToolCalls !== null);
  return {
    ratios,
    own: addSides(
      before.own,
      block.map(({ own }) => own),
    ),
    peer: addSides(
      before.peer,
      block.map(({ peer }) => peer),
    ),
    outputs: addOutputs(before.outputs, block),
    tools: {
      compared: before.tools.compared + tooled.length,
      same: before.tools.same + tooled.filter(({ sameToolCalls }) => sameToolCalls).length,
    },
  };
}

function addSides(before: SideTally, sides: readonly PairSide[]): SideTally {
  const finishes: Record<string, number> = { ...before.finishes };
  let { answers, errors, completionTokens, busySeconds, inflight } = before;
  for (const side of sides) {
    answers++;
    inflight += side.inflight;
    if (side.outcome === 'error') errors++;
    if (side.outcome !== 'ok') continue;
    if (side.finish !== null) finishes[side.finish] = (finishes[side.finish] ?? 0) + 1;
    if (side.completionTokens === null) continue;
    completionTokens += side.completionTokens;
    busySeconds += side.durationMs / 1000 / Math.max(1, side.inflight);
  }
  return { answers, errors, finishes, completionTokens, busySeconds, inflight };
}

function addOutputs(
  { compared, equal, partsAfter, again }: PairFigures['outputs'],
  block: readonly PairObservation[],
): PairFigures['outputs'] {
  const outputs = block.flatMap(({ output }) => output ?? []);
  const parts = [...partsAfter];
  const counts = { ...again };
  for (const { atToken, again: found } of outputs) {
    if (found !== null) counts[found]++;
    if (atToken === null) continue;
    const place = Math.min(MAX_CLASS, atToken < 1 ? 0 : 1 + Math.floor(Math.log2(atToken)));
    while (parts.length <= place) parts.push(0);
    parts[place] = (parts[place] ?? 0) + 1;
  }
  return {
    compared: compared + outputs.length,
    equal: equal + outputs.filter(({ isEqual }) => isEqual).length,
    partsAfter: parts,
    again: counts,
  };
}
