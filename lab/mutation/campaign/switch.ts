import { SWITCH_NAME } from '../mutants/instrument.ts';

/** A mutant may turn so many times as often as the test does without one, and so much more. */
const TURNS_FACTOR = 5;
const MORE_TURNS = 3_000_000;

/** Thrown in a mutant that turns for ever. */
class EndlessLoop extends Error {}

/** Which mutant is on, and which ones the code has reached. The mutated sources ask it through a global name. */
export class MutantSwitch {
  readonly #reached: Uint8Array;
  #active = 0;
  #turns = 0;
  #maxTurns = Number.POSITIVE_INFINITY;
  #isEndless = false;

  /** `mutantCount`: the mutants have numbers from 1 to this one. */
  constructor(mutantCount: number) {
    this.#reached = new Uint8Array(mutantCount + 1);
    const on = (id: number): boolean => {
      if (this.#active === 0) {
        this.#reached[id] = 1;
        return false;
      }
      if (this.#active !== id) return false;
      this.#turn();
      return true;
    };
    const tick = (): void => this.#turn();
    Object.defineProperty(globalThis, SWITCH_NAME, { value: { on, tick }, configurable: true });
  }

  /** Switches a mutant on; 0: none. `normalTurns`: the turns of the test without one. */
  activate(id: number, normalTurns = 0): void {
    this.#active = id;
    this.#turns = 0;
    this.#maxTurns = id === 0 ? Number.POSITIVE_INFINITY : normalTurns * TURNS_FACTOR + MORE_TURNS;
    this.#isEndless = false;
  }

  /** The turns of loops since the last call of `activate`. */
  get turns(): number {
    return this.#turns;
  }

  /** Whether the active mutant turned for ever. */
  get isEndless(): boolean {
    return this.#isEndless;
  }

  /** The mutants that were reached while none was on, since the last call. */
  takeReached(): readonly number[] {
    const ids: number[] = [];
    for (const [id, wasReached] of this.#reached.entries()) if (wasReached === 1) ids.push(id);
    this.#reached.fill(0);
    return ids;
  }

  #turn(): void {
    this.#turns++;
    if (this.#turns <= this.#maxTurns) return;
    this.#isEndless = true;
    throw new EndlessLoop('the mutant turns for ever');
  }
}
