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

  /** Lets others go on. Returns whether the query may, too. */
  async pause(): Promise<boolean> {
    await nextTurn();
    this.#stretchMs = performance.now();
    return this.#stretchMs - this.#startMs <= MAX_QUERY_MS;
  }
}
