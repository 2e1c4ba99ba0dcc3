import { hasTakenBack, type RampTable } from '#replicas/ramps';
import type { CandidateSet, Candidates } from '#replicas/routing';
import type { OpenCandidates } from './open-candidates.ts';
import type { Replica } from './replica.ts';

/** The slots of the candidates on a ramp, by index. */
export type Ramping = ReadonlyMap<number, number>;

/** The members of a set that are on a ramp; null: none. */
export function findRamping(
  candidates: readonly Replica[],
  set: CandidateSet,
  ramps: RampTable,
): Ramping | null {
  const ramping = new Map<number, number>();
  for (const [index, { slot }] of candidates.entries()) {
    if (set.from(index) === index && ramps.progressOf(slot) !== null) ramping.set(index, slot);
  }
  return ramping.size === 0 ? null : ramping;
}

/** Counts one more request for the members of a set, and returns the candidates as it sees them; null if no ramp is left. */
export function rampCandidates(
  candidates: OpenCandidates,
  ramping: Ramping,
  set: CandidateSet,
  ramps: RampTable,
): RampedCandidates | null {
  const shares = new Map<number, number>();
  let evenShares = set.size;
  for (const [index, slot] of ramping) {
    const { share } = ramps.progressOf(slot) ?? { share: 1 };
    if (share === 1) continue;
    shares.set(index, share);
    evenShares -= 1 - share;
  }
  if (shares.size === 0) return null;
  for (const [index, share] of shares) ramps.earnTurn(ramping.get(index) ?? 0, share, evenShares);
  return new RampedCandidates(candidates, { ramping, shares, evenShares, ramps });
}

/** What the ramps make of the candidates of one request. */
interface RampContext {
  readonly ramping: Ramping;
  /** By index. */
  readonly shares: ReadonlyMap<number, number>;
  readonly evenShares: number;
  readonly ramps: RampTable;
}

/**
 * The candidates of one request, of which those on a ramp are open only in their turn. With a prefix key the turn is a
 * prefix that the replica has taken back; without one it is counted.
 */
export class RampedCandidates implements Candidates {
  readonly #candidates: OpenCandidates;
  readonly #context: RampContext;

  constructor(candidates: OpenCandidates, context: RampContext) {
    this.#candidates = candidates;
    this.#context = context;
  }

  isOpen(index: number): boolean {
    const share = this.#context.shares.get(index);
    return (share === undefined || this.#isItsTurn(index, share)) && this.#candidates.isOpen(index);
  }

  /** Whether this candidate is on a ramp. */
  isRamping(index: number): boolean {
    return this.#context.shares.has(index);
  }

  inflightAt(index: number): number {
    return this.#candidates.inflightAt(index);
  }

  seedAt(index: number): number {
    return this.#candidates.seedAt(index);
  }

  evenSharesOf(): number {
    return this.#context.evenShares;
  }

  /** Notes that this candidate took the request. */
  noteTaken(index: number): void {
    const { shares, ramping, ramps } = this.#context;
    const slot = ramping.get(index);
    if (slot !== undefined && shares.has(index) && this.#candidates.prefixKey === null) ramps.spendTurn(slot);
  }

  #isItsTurn(index: number, share: number): boolean {
    const { prefixKey } = this.#candidates;
    const { ramping, ramps } = this.#context;
    if (prefixKey !== null) return hasTakenBack(prefixKey, this.#candidates.seedAt(index), share);
    return ramps.hasTurn(ramping.get(index) ?? 0);
  }
}
