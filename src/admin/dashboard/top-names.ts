import { SlicedTally, WINDOW_SLICES } from './slices.ts';
import type { CountedRequest, Tally } from './tally.ts';

/** The row of all names without a row of their own. A client that uses it as a name is counted there too. */
export const OTHER_NAMES = '_OTHER';

/** How many names have a row of their own. */
const MAX_NAMES = 50;
/** How many names without a row are counted at a time, to find those that deserve one. */
const MAX_CANDIDATES = 256;

/**
 * The traffic of the last minute by names that clients choose. Clients can invent names, so the memory is bounded: 50
 * names have a row, the others share one. The first names get rows. At the end of each slice, names with more requests
 * than the weakest rows take their places; what an evicted row has counted moves to the common row. A name is found if
 * it has more than 1/256 of the requests without a row (Misra and Gries, "Finding repeated elements", 1982).
 */
export class TopNames {
  readonly #rows = new Map<string, SlicedTally>();
  readonly #others = new SlicedTally(WINDOW_SLICES);
  readonly #candidates = new Map<string, number>();

  /** Counts a request that ends in this slice. Returns the name of its row. */
  add(name: string, slice: number, request: CountedRequest): string {
    const row = this.#rows.get(name) ?? this.#createRow(name);
    if (row !== null) {
      row.at(slice).add(request);
      return name;
    }
    if (name !== OTHER_NAMES) this.#countCandidate(name);
    this.#others.at(slice).add(request);
    return OTHER_NAMES;
  }

  /** Gives the rows to the names that need them. Call it when `slice` has ended. */
  endSlice(slice: number): void {
    const first = slice - WINDOW_SLICES + 1;
    for (const [name, row] of this.#rows) if (row.newest < first) this.#rows.delete(name);
    const weakest = [...this.#rows]
      .map(([name, row]) => ({ name, row, weight: toWeight(row, slice) }))
      .sort((a, b) => a.weight - b.weight);
    const strongest = [...this.#candidates].sort(([, a], [, b]) => b - a);
    this.#candidates.clear();
    for (const [name, count] of strongest) {
      if (this.#createRow(name) !== null) continue;
      const evicted = weakest.shift();
      if (evicted === undefined || evicted.weight >= count) return;
      this.#others.mergeFrom(first, evicted.row);
      this.#rows.delete(evicted.name);
      this.#createRow(name);
    }
  }

  /** The sums from slice `first` on, most requests first, those of the other names last. Empty rows are left out. */
  sumsFrom(first: number): readonly (readonly [name: string, sum: Tally])[] {
    const sums = [...this.#rows].map(([name, row]) => [name, row.sumFrom(first)] as const);
    sums.sort(([, a], [, b]) => b.requests - a.requests);
    return [...sums, [OTHER_NAMES, this.#others.sumFrom(first)] as const].filter(
      ([, sum]) => sum.requests > 0,
    );
  }

  /** Null if all rows are taken. */
  #createRow(name: string): SlicedTally | null {
    if (this.#rows.size >= MAX_NAMES || name === OTHER_NAMES) return null;
    const row = new SlicedTally(WINDOW_SLICES);
    this.#rows.set(name, row);
    return row;
  }

  #countCandidate(name: string): void {
    const count = this.#candidates.get(name);
    if (count !== undefined || this.#candidates.size < MAX_CANDIDATES) {
      this.#candidates.set(name, (count ?? 0) + 1);
      return;
    }
    for (const [each, counted] of this.#candidates) {
      if (counted === 1) this.#candidates.delete(each);
      else this.#candidates.set(each, counted - 1);
    }
  }
}

/** A row counts with its last slice, or with its average slice: a name with a pause keeps its row for a while. */
function toWeight(row: SlicedTally, slice: number): number {
  const average = row.requestsFrom(slice - WINDOW_SLICES + 1) / WINDOW_SLICES;
  return Math.max(row.find(slice)?.requests ?? 0, average);
}
