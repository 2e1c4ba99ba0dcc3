import { nextLogicalTimestamp } from '#replicas/drain-state';

/** How far a gateway's clocks are from true time. */
interface Drift {
  /** Of the monotonic clock. */
  readonly rate: number;
  readonly wallOffsetMs: number;
}

/** The clocks of a gateway in the model. */
export class ModelClock {
  readonly #drift: Drift;
  readonly #trueMs: () => number;
  readonly #chance: () => number;

  constructor(drift: Drift, { nowMs, chance }: { nowMs: () => number; chance: () => number }) {
    this.#drift = drift;
    this.#trueMs = nowMs;
    this.#chance = chance;
  }

  /** The monotonic clock. */
  get nowMs(): number {
    return 1_000 + this.#trueMs() * this.#drift.rate;
  }

  stampAfter(before: string): string {
    const wallMs = 1_800_000_000_000 + this.#drift.wallOffsetMs + Math.floor(this.#trueMs());
    const random = Math.floor(this.#chance() * 2 ** 48);
    return nextLogicalTimestamp(before, wallMs, random.toString(16).padStart(12, '0'));
  }
}
