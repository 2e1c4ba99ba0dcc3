import { toComparedMs } from '#verdict';
import type { PairObservation, PairSide } from './pair-observation.ts';

/** The times that are compared in pairs. */
export const PAIR_TIMES = ['first_token', 'gaps', 'duration'] as const;

/** The same, and the tokens of the completion. */
export const PAIR_MEASURES = [...PAIR_TIMES, 'lengths'] as const;

export type PairMeasure = (typeof PAIR_MEASURES)[number];

/** What pairs can show to be wrong with a shadow. */
export const PAIR_DIMENSIONS = [
  ...PAIR_TIMES,
  'lengths',
  'errors',
  'finish_reasons',
  'tool_calls',
  'outputs',
] as const;

export type PairDimension = (typeof PAIR_DIMENSIONS)[number];

/** The logarithm of how many times that of its primary the value of the shadow is; null: not both have one. */
export function logRatioOf(measure: PairMeasure, { own, peer, stream }: PairObservation): number | null {
  if (own.outcome !== 'ok' || peer.outcome !== 'ok') return null;
  const [ownValue, peerValue] = [measureOf(measure, own, stream), measureOf(measure, peer, stream)];
  return ownValue === null || peerValue === null ? null : Math.log(ownValue / peerValue);
}

function measureOf(
  measure: PairMeasure,
  { firstTokenMs, gapMs, durationMs, completionTokens }: PairSide,
  isStream: boolean,
): number | null {
  switch (measure) {
    case 'first_token':
      return isStream ? toComparedMs(firstTokenMs) : null;
    case 'gaps':
      return isStream ? toComparedMs(gapMs) : null;
    case 'duration':
      return isStream ? null : toComparedMs(durationMs);
    case 'lengths':
      return completionTokens === null ? null : Math.max(1, completionTokens);
  }
}
