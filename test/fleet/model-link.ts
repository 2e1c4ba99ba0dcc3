/** What a link gets from the world around it. */
export interface LinkSurroundings {
  /** True time. */
  readonly nowMs: () => number;
  readonly later: (afterMs: number, what: () => void) => void;
  /** A number from 0 up to and without 1. */
  readonly chance: () => number;
}

/** Of a call to the store. */
const DEADLINE_MS = 1_000;

/** How long a message takes at most where nothing is wrong. */
const WAY_MS = 40;

/** A gateway's way to the store. Messages under way when it is cut may arrive all the same. */
export class ModelLink {
  isCut = false;
  /** What is written may take long to arrive. */
  isSlow = false;
  /** How long the way to the store takes at least, and the way back. */
  lagMs = 0;
  /** It has lost the store with everybody else, and is back at this time. */
  backAtMs = 0;
  readonly #with: LinkSurroundings;

  constructor(surroundings: LinkSurroundings) {
    this.#with = surroundings;
  }

  get isWhole(): boolean {
    return !this.isCut && !this.isSlow;
  }

  heal(): void {
    this.isCut = false;
    this.isSlow = false;
    this.lagMs = 0;
  }

  /** A reading: what it does at the store in these steps, each a way, and what comes of it in time or not. */
  read(steps: readonly (() => void)[], end: (isInTime: boolean) => void): void {
    this.#call(steps, end, WAY_MS);
  }

  write(step: () => void, end: (isInTime: boolean) => void): void {
    this.#call([step], end, this.isSlow ? 15_000 : WAY_MS);
  }

  /** Carries a message to the store or back: lost if the link is cut when it leaves, and sometimes later. */
  send(arrive: () => void, withinMs = WAY_MS): void {
    const { nowMs, later, chance } = this.#with;
    if (this.isCut || nowMs() < this.backAtMs) return;
    later(this.lagMs + chance() * withinMs, () => {
      if (!this.isCut || chance() < 0.5) arrive();
      else later(chance() * 20_000, arrive); // it lay somewhere on the way
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
    this.#with.later(DEADLINE_MS, () => finish(false));
    go(steps);
  }
}
