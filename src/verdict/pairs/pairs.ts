/*
 * Whether a replica answers as another one does, from pairs of answers to the same request: how much later the first token
 * came, how much wider the gaps are, where the outputs part.
 *
 * It never knows a text: outputs are compared by digests before they come here.
 * Begin with paired-comparison.ts.
 */

export { ratioAt, toRatioList } from './histogram.ts';
export type { PairFigures, SideTally } from './pair-figures.ts';
export type { OutputComparison, PairObservation, PairSide } from './pair-observation.ts';
export { PairedComparison } from './paired-comparison.ts';
