/** What a link works with. */
export interface LinkCollaborators {
  /** True time. */
  readonly nowMs: () => number;
  readonly schedule: (afterMs: number, action: () => void) => void;
  /** A random number from 0 (inclusive) to 1 (exclusive). */
  readonly chance: () => number;
}

/** The deadline of a call to the store. */
const DEADLINE_MS = 1_000;

/** The longest time that a message takes one way without a fault. */
const TRIP_MS = 40;

/** A gateway's link to the store. Messages that are on their way when it is cut may still arrive. */
export class ModelLink {
  isCut = false;
  /** Whether writes may take long to arrive. */
  isSlow = false;
  /** The least time that a message takes each way. */
  lagMs = 0;
  /** When the link works again after the store restarted. */
  backAtMs = 0;
  readonly #collaborators: LinkCollaborators;

  constructor(collaborators: LinkCollaborators) {
    this.#collaborators = collaborators;
  }

  get isHealthy(): boolean {
    return !this.isCut && !this.isSlow;
  }

  heal(): void {
    this.isCut = false;
    this.isSlow = false;
    this.lagMs = 0;
  }

  /** A read. Each step is one trip to the store. `end` is told whether the answer came within the deadline. */
  read(steps: readonly (() => void)[], end: (isInTime: boolean) => void): void {
    this.#call(steps, end, TRIP_MS);
  }

  write(step: () => void, end: (isInTime: boolean) => void): void {
    this.#call([step], end, this.isSlow ? 15_000 : TRIP_MS);
  }

  /**
   * Carries a message one way. It is lost if the link is cut when it leaves; if the link is cut later, it may arrive
   * late.
   */
  send(arrive: () => void, withinMs = TRIP_MS): void {
    const { nowMs, schedule, chance } = this.#collaborators;
    if (this.isCut || nowMs() < this.backAtMs) return;
    schedule(this.lagMs + chance() * withinMs, () => {
      if (!this.isCut || chance() < 0.5) arrive();
      else schedule(chance() * 20_000, arrive); // it was delayed in the network
    });
  }

  #call(steps: readonly (() => void)[], end: (isInTime: boolean) => void, withinMs: number): void {
    let isOver = false;
    const finish = (isInTime: boolean) => {
      if (isOver) return;
      isOver = true;
      end(isInTime);
    };
    const go = ([step, ...rest]: readonly (() => void)[]): void => {
      if (step === undefined) {
        this.send(() => finish(true));
        return;
      }
      this.send(() => {
        step();
        go(rest);
      }, withinMs);
    };
    this.#collaborators.schedule(DEADLINE_MS, () => finish(false));
    go(steps);
  }
}
