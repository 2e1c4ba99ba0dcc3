import type { CandidateSet, Candidates } from './candidate-set.ts';

/**
 * The open candidate of the circle with the fewest requests in flight; of several, the one whose turn comes first
 * from `turn` on. Null if none is open. Looks at every candidate.
 */
export function leastInflight(
  circle: CandidateSet,
  turn: number,
  candidates: Pick<Candidates, 'isOpen' | 'inflightAt'>,
): number | null {
  let best: number | null = null;
  let fewest = Number.POSITIVE_INFINITY;
  let place = circle.from(turn);
  for (let seen = 0; seen < circle.size; seen++) {
    const inflight = candidates.inflightAt(place);
    if (inflight < fewest && candidates.isOpen(place)) {
      best = place;
      fewest = inflight;
    }
    place = circle.after(place);
  }
  return best;
}
