import type { Candidates } from '../routing/candidate-set.ts';
import { CandidateSet } from '../routing/candidate-set.ts';
import type { RoutingPolicy } from '../routing/policies.ts';
import type { PrefixPopularity } from '../routing/prefix-popularity.ts';
import { roundRobin } from '../routing/round-robin.ts';
import type { SharedState } from '../shared/shared-state.ts';
import type { Replica } from './replica.ts';

/** What a request brings to the choice of its replica. */
export interface Asked {
  /** The replicas that were tried for it in vain. */
  readonly tried: ReadonlySet<Replica>;
  /** What stands for the beginning of its text, where that counts; else null. */
  readonly prefixKey: number | null;
  /** Its ticket if it waits for a replica with room; else null. */
  readonly ticket: number | null;
}

/** How a rotation chooses. */
export interface RotationSettings {
  /** Its cursor in shared memory. */
  readonly cursor: number;
  readonly choose: RoutingPolicy;
  readonly heat: PrefixPopularity;
  /** Whether `max_inflight` holds for what goes by it. */
  readonly isLimited: boolean;
}

/** The undrained candidates, as they stood at a version of the shared state. */
interface Standing {
  readonly version: number;
  readonly ok: CandidateSet;
  /** Tried when none of the others can be. */
  readonly failing: CandidateSet;
}

/**
 * The turns of one model: its candidates in configured order and one cursor that all threads share, left after the
 * replica that was taken last. A replica that is skipped (drained, or refused this request) costs nobody a turn.
 */
export class Rotation {
  readonly candidates: readonly Replica[];
  /** Which prefixes of its requests are popular. */
  readonly heat: PrefixPopularity;
  readonly #cursor: number;
  readonly #choose: RoutingPolicy;
  readonly #isLimited: boolean;
  readonly #shared: SharedState;
  /** Those that are not drained: choosing costs the same however many are. Derived again when that has changed. */
  #standing: Standing | null = null;

  constructor(candidates: readonly Replica[], settings: RotationSettings, shared: SharedState) {
    this.candidates = candidates;
    this.heat = settings.heat;
    this.#cursor = settings.cursor;
    this.#choose = settings.choose;
    this.#isLimited = settings.isLimited;
    this.#shared = shared;
  }

  /**
   * Chooses a candidate that is neither drained, tried nor at its `max_inflight`, moves the cursor behind it and counts
   * a request in flight on it. Null if there is none, or those have the right of way who have waited for longer.
   */
  takeTurn(asked: Asked): Replica | null {
    const candidates = new OpenCandidates(this.candidates, asked, this.#isLimited);
    for (;;) {
      const { ok, failing } = this.#deriveStanding();
      const retried = failing.size === 0 ? null : this.#claimRetry(failing, candidates);
      if (retried !== null && this.#begin(retried)) return retried;
      const turn = this.#shared.cursorAt(this.#cursor);
      const place =
        this.#choose(ok, turn, candidates, asked.prefixKey) ?? roundRobin(failing, turn, candidates);
      const replica = place === null ? undefined : this.candidates[place];
      if (place === null || replica === undefined) return null;
      const next = (place + 1) % this.candidates.length;
      // Another thread may have taken this very turn: then it is the next one's.
      if (this.#shared.moveCursor(this.#cursor, turn, next) && this.#begin(replica)) return replica;
    }
  }

  /** A failing candidate that this request is to try, beside all turns: see `HealthTable.claimRetry`. */
  #claimRetry(failing: CandidateSet, candidates: OpenCandidates): Replica | null {
    const isOpen = (place: number) =>
      candidates.isOpen(place) && this.candidates[place]?.claimRetry() === true;
    const place = roundRobin(failing, 0, { isOpen });
    return place === null ? null : (this.candidates[place] ?? null);
  }

  /** Counts a request in flight. False: another thread has taken the last place. */
  #begin(replica: Replica): boolean {
    if (this.#isLimited) return replica.tryBegin();
    replica.begin();
    return true;
  }

  /** Whether there is a candidate that is neither drained nor tried, whatever it has in flight. */
  hasUntried(tried: ReadonlySet<Replica>): boolean {
    return this.candidates.some((replica) => !replica.isDrained && !tried.has(replica));
  }

  #deriveStanding(): Standing {
    const version = this.#shared.eligibilityVersion;
    if (this.#standing?.version === version) return this.#standing;
    const { candidates } = this;
    const circleOf = (isFailing: boolean) =>
      new CandidateSet(candidates.length, (place) => {
        const replica = candidates[place];
        return replica?.isDrained === false && replica.isFailing === isFailing;
      });
    this.#standing = { version, ok: circleOf(false), failing: circleOf(true) };
    return this.#standing;
  }
}

/** The candidates as one request sees them. */
class OpenCandidates implements Candidates {
  readonly #replicas: readonly Replica[];
  readonly #asked: Asked;
  readonly #isLimited: boolean;

  constructor(replicas: readonly Replica[], asked: Asked, isLimited: boolean) {
    this.#replicas = replicas;
    this.#asked = asked;
    this.#isLimited = isLimited;
  }

  isOpen(place: number): boolean {
    const replica = this.#replicas[place];
    if (replica === undefined || this.#asked.tried.has(replica)) return false;
    return !this.#isLimited || replica.hasRoomFor(this.#asked.ticket);
  }

  inflightAt(place: number): number {
    return this.#replicas[place]?.inflight ?? 0;
  }

  seedAt(place: number): number {
    return this.#replicas[place]?.seed ?? 0;
  }
}
