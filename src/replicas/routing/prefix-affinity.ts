import type { CandidateSet, Candidates } from './candidate-set.ts';
import { leastInflight } from './least-inflight.ts';

/** How far above the mean a replica's load may go before its prefixes go elsewhere. */
const LOAD_BOUND = 1.25;

/**
 * The candidate that a prefix belongs to: rendezvous hashing (Thaler and Ravishankar 1998), so that every gateway
 * finds the same one, and that a replica which comes or goes takes only its own prefixes with it. A candidate whose
 * requests in flight would exceed 1.25 times the mean is passed over for the prefix's next one ("Consistent Hashing
 * with Bounded Loads", Mirrokni, Thorup and Zadimoghaddam 2016).
 *
 * Where all below the bound are tried or full, it is the one with the fewest in flight. Null if none is open.
 * Looks at every candidate twice.
 *
 * @param key 32 bits of the prefix's hash
 * @param turn whose turn it is, where nothing else tells candidates apart
 */
export function ownerOfPrefix(
  key: number,
  circle: CandidateSet,
  turn: number,
  candidates: Candidates,
): number | null {
  const bound = loadBound(circle, candidates);
  let owner: number | null = null;
  let highest = -1;
  let place = circle.from(turn);
  for (let seen = 0; seen < circle.size; seen++) {
    const weight = weightOf(key, candidates.seedAt(place));
    if (weight > highest && candidates.inflightAt(place) < bound && candidates.isOpen(place)) {
      owner = place;
      highest = weight;
    }
    place = circle.after(place);
  }
  return owner ?? leastInflight(circle, turn, candidates);
}

/** What no candidate may exceed once it has this request too. At least one of them is below it. */
function loadBound(circle: CandidateSet, candidates: Pick<Candidates, 'inflightAt'>): number {
  let inflight = 0;
  let place = circle.from(0);
  for (let seen = 0; seen < circle.size; seen++) {
    inflight += candidates.inflightAt(place);
    place = circle.after(place);
  }
  return Math.ceil((LOAD_BOUND * (inflight + 1)) / circle.size);
}

/** The weight of a key at a candidate: 32 bits in which both are mixed (the finaliser of MurmurHash3). */
function weightOf(key: number, seed: number): number {
  let bits = key ^ seed;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
