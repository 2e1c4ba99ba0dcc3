import type { CandidateSet, Candidates } from './candidate-set.ts';

/**
 * The first open candidate of the circle whose turn it is from `turn` on; null if none is open. One step, and one
 * more for each candidate on the way that is not open.
 */
export function roundRobin(
  circle: CandidateSet,
  turn: number,
  candidates: Pick<Candidates, 'isOpen'>,
): number | null {
  let place = circle.from(turn);
  for (let passed = 0; passed < circle.size; passed++) {
    if (candidates.isOpen(place)) return place;
    place = circle.after(place);
  }
  return null;
}
