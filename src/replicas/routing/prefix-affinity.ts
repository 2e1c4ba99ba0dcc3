import type { CandidateSet, Candidates } from './candidate-set.ts';
import { leastInflight } from './least-inflight.ts';

/** How far a replica's load may exceed the mean before its prefixes go to other replicas. */
const LOAD_BOUND = 1.25;

/**
 * The candidate that owns a prefix, by rendezvous hashing (Thaler and Ravishankar 1998): every gateway finds the same
 * owner, and a replica that comes or goes moves only its own prefixes. A candidate whose requests in flight would
 * exceed 1.25 times the mean is skipped for the prefix's next one ("Consistent Hashing with Bounded Loads", Mirrokni,
 * Thorup and Zadimoghaddam 2016).
 *
 * If all candidates below the bound are tried or full, it is the one with the fewest requests in flight. Null if none
 * is open. Looks at every candidate twice.
 *
 * @param key 32 bits of the prefix's hash
 * @param start decides between candidates that are equal otherwise
 */
export function ownerOfPrefix(
  key: number,
  set: CandidateSet,
  start: number,
  candidates: Candidates,
): number | null {
  const bound = loadBound(set, candidates);
  let owner: number | null = null;
  let highest = -1;
  let index = set.from(start);
  for (let seen = 0; seen < set.size; seen++) {
    const weight = weightOf(key, candidates.seedAt(index));
    if (weight > highest && candidates.inflightAt(index) < bound && candidates.isOpen(index)) {
      owner = index;
      highest = weight;
    }
    index = set.after(index);
  }
  return owner ?? leastInflight(set, start, candidates);
}

/** Whether a member of the set owns a prefix, however busy it is. */
export function ownsPrefix(
  key: number,
  set: CandidateSet,
  member: number,
  candidates: Pick<Candidates, 'seedAt'>,
): boolean {
  const own = weightOf(key, candidates.seedAt(member));
  let index = set.from(0);
  for (let seen = 0; seen < set.size; seen++) {
    if (weightOf(key, candidates.seedAt(index)) > own) return false;
    index = set.after(index);
  }
  return true;
}

/** The most requests that a candidate may have in flight, this one included. At least one candidate is below it. */
function loadBound(set: CandidateSet, candidates: Pick<Candidates, 'inflightAt' | 'evenSharesOf'>): number {
  let inflight = 0;
  let index = set.from(0);
  for (let seen = 0; seen < set.size; seen++) {
    inflight += candidates.inflightAt(index);
    index = set.after(index);
  }
  return Math.ceil((LOAD_BOUND * (inflight + 1)) / candidates.evenSharesOf(set));
}

/** The weight of a key at a candidate: 32 bits that mix both (the finaliser of MurmurHash3). */
function weightOf(key: number, seed: number): number {
  let bits = key ^ seed;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
