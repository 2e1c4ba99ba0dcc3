import type { Replica } from './replica.ts';
import type { Candidates } from './routing/candidates.ts';
import { Circle } from './routing/circle.ts';
import type { Choose } from './routing/policies.ts';
import type { PrefixHeat } from './routing/prefix-heat.ts';
import type { SharedState } from './shared-state.ts';

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
  readonly choose: Choose;
  readonly heat: PrefixHeat;
  /** Whether `max_inflight` holds for what goes by it. */
  readonly isLimited: boolean;
}

/**
 * The turns of one model: its candidates in configured order and one cursor that all threads share, left after the
 * replica that was taken last. A replica that is skipped (drained, or refused this request) costs nobody a turn.
 */
export class Rotation {
  readonly candidates: readonly Replica[];
  /** Which prefixes of its requests are popular. */
  readonly heat: PrefixHeat;
  readonly #cursor: number;
  readonly #choose: Choose;
  readonly #isLimited: boolean;
  readonly #shared: SharedState;
  /** Those that are not drained: choosing costs the same however many are. Derived again when drains have changed. */
  #undrained: Circle | null = null;
  #derivedAt: number | null = null;

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
      const turn = this.#shared.cursorAt(this.#cursor);
      const place = this.#choose(this.#deriveUndrained(), turn, candidates, asked.prefixKey);
      const replica = place === null ? undefined : this.candidates[place];
      if (place === null || replica === undefined) return null;
      const next = (place + 1) % this.candidates.length;
      // Another thread may have taken this very turn: then it is the next one's.
      if (!this.#shared.moveCursor(this.#cursor, turn, next)) continue;
      if (!this.#isLimited) replica.begin();
      else if (!replica.tryBegin()) continue;
      return replica;
    }
  }

  /** Whether there is a candidate that is neither drained nor tried, whatever it has in flight. */
  hasUntried(tried: ReadonlySet<Replica>): boolean {
    return this.candidates.some((replica) => !replica.isDrained && !tried.has(replica));
  }

  #deriveUndrained(): Circle {
    const version = this.#shared.drainVersion;
    if (this.#undrained === null || version !== this.#derivedAt) {
      const { candidates } = this;
      this.#undrained = new Circle(candidates.length, (place) => candidates[place]?.isDrained === false);
      this.#derivedAt = version;
    }
    return this.#undrained;
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
