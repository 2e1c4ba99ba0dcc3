import { HISTORY_SLICES } from './slices.ts';

/** The current slice is kept too, but not shown: it is not complete. */
const KEPT_SLICES = HISTORY_SLICES + 1;

/** Two counts for each complete slice of the last five minutes, oldest first. */
export interface TrendFigures {
  readonly requests: readonly number[];
  readonly errors: readonly number[];
}

/** The requests and errors of the last five minutes in 488 bytes. Slices are given in ascending order. */
export class Trend {
  readonly #requests = new Uint32Array(KEPT_SLICES);
  readonly #errors = new Uint32Array(KEPT_SLICES);
  #newest: number;

  constructor(slice: number) {
    this.#newest = slice;
  }

  /** The slice of the last request. */
  get newest(): number {
    return this.#newest;
  }

  /** Counts a request that ends in this slice. */
  add(slice: number, isError: boolean): void {
    if (slice !== this.#newest) this.#advanceTo(slice);
    const place = slice % KEPT_SLICES;
    this.#requests[place] = (this.#requests[place] ?? 0) + 1;
    if (isError) this.#errors[place] = (this.#errors[place] ?? 0) + 1;
  }

  /** The counts of the slices before `current`. */
  figures(current: number): TrendFigures {
    const slices = Array.from({ length: HISTORY_SLICES }, (_, index) => current - HISTORY_SLICES + index);
    const isKept = (slice: number) =>
      slice >= 0 && slice <= this.#newest && slice > this.#newest - KEPT_SLICES;
    const read = (counts: Uint32Array) =>
      slices.map((slice) => (isKept(slice) ? (counts[slice % KEPT_SLICES] ?? 0) : 0));
    return { requests: read(this.#requests), errors: read(this.#errors) };
  }

  #advanceTo(slice: number): void {
    const first = Math.max(this.#newest + 1, slice - KEPT_SLICES + 1);
    for (let skipped = first; skipped <= slice; skipped++) {
      this.#requests[skipped % KEPT_SLICES] = 0;
      this.#errors[skipped % KEPT_SLICES] = 0;
    }
    this.#newest = slice;
  }
}
