import { setImmediate as nextTurn } from 'node:timers/promises';

/** A query takes so long at a stretch: in between, records are written. */
const STRETCH_MS = 50;
/** And so long altogether. Then it answers with what it has, or not at all. */
const MAX_QUERY_MS = 5_000;

/** How a query shares its thread with the writing of records, and when it has taken long enough. */
export class Pace {
  readonly #startMs = performance.now();
  #stretchMs = this.#startMs;

  /** Whether it should pause. */
  get isDue(): boolean {
    return performance.now() - this.#stretchMs > STRETCH_MS;
  }

  /** Whether it has taken as long as it may. */
  get isOver(): boolean {
    return performance.now() - this.#startMs > MAX_QUERY_MS;
  }

  /** Lets others go on. */
  async pause(): Promise<void> {
    await nextTurn();
    this.#stretchMs = performance.now();
  }
}
