import { CandidateSet, type PrefixPopularity, type RoutingPolicy, roundRobin } from '#replicas/routing';
import type { SharedState } from '#replicas/shared';
import { OpenCandidates, type PickContext } from './open-candidates.ts';
import { findRamping, type RampedCandidates, type Ramping, rampCandidates } from './ramped-candidates.ts';
import type { Replica } from './replica.ts';

export interface RotationSettings {
  /** Its cursor in shared memory. */
  readonly cursor: number;
  readonly policy: RoutingPolicy;
  readonly popularity: PrefixPopularity;
  /** Whether `max_inflight` holds for its requests. */
  readonly isLimited: boolean;
}

/** The undrained candidates at one version of the shared state. */
interface Eligible {
  readonly version: number;
  readonly ok: CandidateSet;
  /** Those of `ok` that may be on a ramp; null: none. */
  readonly ramping: Ramping | null;
  /** Tried when no other can be. */
  readonly failing: CandidateSet;
}

/**
 * The candidates for one model in configured order, and the cursor that all threads share. The cursor is left after the
 * last replica picked, so that one that is skipped, because it is drained or was tried, does not move the others.
 */
export class Rotation {
  readonly candidates: readonly Replica[];
  readonly popularity: PrefixPopularity;
  /** Whether a candidate may take a member's name in another case for its own. */
  readonly mayFoldCase: boolean;
  readonly #settings: RotationSettings;
  readonly #shared: SharedState;
  /** Derived again when drains or health have changed, so that a pick costs the same however many are drained. */
  #eligible: Eligible | null = null;

  constructor(candidates: readonly Replica[], settings: RotationSettings, shared: SharedState) {
    this.candidates = candidates;
    this.popularity = settings.popularity;
    this.mayFoldCase = candidates.some((candidate) => candidate.mayFoldCase);
    this.#settings = settings;
    this.#shared = shared;
  }

  /**
   * Picks a candidate that is not drained, not tried and not at its `max_inflight`, moves the cursor past it and counts
   * a request in flight on it. Null if there is none, or if requests that have waited longer come first.
   */
  pick(context: PickContext): Replica | null {
    const { cursor, policy, isLimited } = this.#settings;
    const candidates = new OpenCandidates(this.candidates, context, isLimited);
    const first = this.#deriveEligible();
    const ramped = first.ramping === null ? null : this.#onRamp(first, first.ramping, candidates);
    for (;;) {
      const { ok, failing } = this.#deriveEligible();
      const retried = failing.size === 0 ? null : this.#claimRetry(failing, candidates);
      if (retried !== null && this.#begin(retried)) return retried;
      const start = this.#shared.cursorAt(cursor);
      const index =
        (ramped && policy(ok, start, ramped, context.prefixKey)) ??
        policy(ok, start, candidates, context.prefixKey) ??
        roundRobin(failing, start, candidates);
      const replica = index === null ? undefined : this.candidates[index];
      if (index === null || replica === undefined) return null;
      const next = (index + 1) % this.candidates.length;
      // If another thread has moved the cursor, pick again.
      if (!this.#shared.moveCursor(cursor, start, next) || !this.#begin(replica)) continue;
      ramped?.noteTaken(index);
      return replica;
    }
  }

  /** The candidates with their ramps, after this request has counted; null once all ramps are at their end. */
  #onRamp(eligible: Eligible, ramping: Ramping, candidates: OpenCandidates): RampedCandidates | null {
    const ramped = rampCandidates(candidates, ramping, eligible.ok, this.#shared.ramps);
    if (ramped === null) this.#eligible = { ...eligible, ramping: null };
    return ramped;
  }

  /**
   * Counts a request in flight on this candidate, wherever the cursor is, and leaves the cursor there. `busy`: it is at
   * its `max_inflight`. Null: it is no candidate, was tried or is drained.
   */
  pickOne(replica: Replica, context: PickContext): Replica | 'busy' | null {
    if (!this.candidates.includes(replica) || context.tried.has(replica) || replica.isDrained) return null;
    const hasRoom = !this.#settings.isLimited || replica.hasRoomFor(context.ticket);
    return hasRoom && this.#begin(replica) ? replica : 'busy';
  }

  /** A failing candidate that this request must try, without moving the cursor: see `HealthTable.claimRetry`. */
  #claimRetry(failing: CandidateSet, candidates: OpenCandidates): Replica | null {
    const isOpen = (index: number) =>
      candidates.isOpen(index) && this.candidates[index]?.claimRetry() === true;
    const index = roundRobin(failing, 0, { isOpen });
    return index === null ? null : (this.candidates[index] ?? null);
  }

  /** Counts a request in flight. False: another thread took the last unit of its `max_inflight`. */
  #begin(replica: Replica): boolean {
    if (this.#settings.isLimited) return replica.tryBegin();
    replica.begin();
    return true;
  }

  /** Whether a candidate is neither drained nor tried, whatever it has in flight. */
  hasUntried(tried: ReadonlySet<Replica>): boolean {
    return this.candidates.some((replica) => !replica.isDrained && !tried.has(replica));
  }

  #deriveEligible(): Eligible {
    const version = this.#shared.eligibilityVersion;
    if (this.#eligible?.version === version) return this.#eligible;
    const { candidates } = this;
    const undrained = (isFailing: boolean) =>
      new CandidateSet(candidates.length, (index) => {
        const replica = candidates[index];
        return replica?.isDrained === false && replica.isFailing === isFailing;
      });
    const ok = undrained(false);
    const ramping = findRamping(candidates, ok, this.#shared.ramps);
    this.#eligible = { version, ok, ramping, failing: undrained(true) };
    return this.#eligible;
  }
}
