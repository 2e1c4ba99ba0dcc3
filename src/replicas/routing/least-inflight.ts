import type { CandidateSet, Candidates } from './candidate-set.ts';

/**
 * The open member of the set with the fewest requests in flight; of several, the first from `start` on. Null if none is
 * open. Looks at every member.
 */
export function leastInflight(
  set: CandidateSet,
  start: number,
  candidates: Pick<Candidates, 'isOpen' | 'inflightAt'>,
): number | null {
  let best: number | null = null;
  let fewest = Number.POSITIVE_INFINITY;
  let index = set.from(start);
  for (let seen = 0; seen < set.size; seen++) {
    const inflight = candidates.inflightAt(index);
    if (inflight < fewest && candidates.isOpen(index)) {
      best = index;
      fewest = inflight;
    }
    index = set.after(index);
  }
  return best;
}
