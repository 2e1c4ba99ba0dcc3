import { Tally } from './tally.ts';

/** The length of a slice of time: the resolution of rates and quantiles. */
export const SLICE_MS = 5_000;
/** The figures cover the last minute: the current slice and eleven complete ones. */
export const WINDOW_SLICES = 12;
/** The history covers the last five minutes. */
export const HISTORY_SLICES = 60;

/** The number of the slice that a time of a monotonic clock belongs to. */
export function toSliceIndex(nowMs: number): number {
  return Math.floor(nowMs / SLICE_MS);
}

/** One tally for each of the last slices, in memory that is reused. Slices are given in ascending order. */
export class SlicedTally {
  readonly #tallies: (Tally | undefined)[];
  /** The slice of each tally. */
  readonly #slices: number[];
  #newest = -1;

  /** Keeps the current slice and those before it, `sliceCount` in all. */
  constructor(sliceCount: number) {
    this.#tallies = Array.from({ length: sliceCount });
    this.#slices = Array.from({ length: sliceCount }, () => -1);
  }

  /** The newest slice with a request; -1 if there is none. */
  get newest(): number {
    return this.#newest;
  }

  /** The tally to count a request in that ends in this slice. */
  at(slice: number): Tally {
    const place = slice % this.#slices.length;
    let tally = this.#tallies[place];
    if (tally !== undefined && this.#slices[place] === slice) return tally;
    if (tally === undefined) {
      tally = new Tally();
      this.#tallies[place] = tally;
    } else tally.clear();
    this.#slices[place] = slice;
    this.#newest = slice;
    return tally;
  }

  /** The tally of one slice, if a request ended in it and the slice is still kept. */
  find(slice: number): Tally | undefined {
    const place = slice % this.#slices.length;
    return this.#slices[place] === slice ? this.#tallies[place] : undefined;
  }

  /** The sum of the slices from `first` on. */
  sumFrom(first: number): Tally {
    const sum = new Tally();
    for (const [place, tally] of this.#tallies.entries()) {
      if (tally !== undefined && (this.#slices[place] ?? -1) >= first) sum.merge(tally);
    }
    return sum;
  }

  /** How many requests ended in the slices from `first` on. */
  requestsFrom(first: number): number {
    let requests = 0;
    for (const [place, tally] of this.#tallies.entries()) {
      if (tally !== undefined && (this.#slices[place] ?? -1) >= first) requests += tally.requests;
    }
    return requests;
  }

  /** Adds the slices of another one, from `first` on. */
  mergeFrom(first: number, other: SlicedTally): void {
    for (const slice of other.#slices.toSorted((a, b) => a - b)) {
      const tally = slice < first ? undefined : other.find(slice);
      if (tally !== undefined) this.at(slice).merge(tally);
    }
  }
}
