import type { CandidateSet, Candidates } from './candidate-set.ts';

/**
 * The first open member of the set from `start` on; null if none is open. Takes one step, and one more for each member
 * on the way that is not open.
 */
export function roundRobin(
  set: CandidateSet,
  start: number,
  candidates: Pick<Candidates, 'isOpen'>,
): number | null {
  let index = set.from(start);
  for (let passed = 0; passed < set.size; passed++) {
    if (candidates.isOpen(index)) return index;
    index = set.after(index);
  }
  return null;
}
