import { SlicedTally, WINDOW_SLICES } from './slices.ts';
import type { CountedRequest, Tally } from './tally.ts';

/** The row of all names without a row of their own. A client that uses it as a name is counted there too. */
export const OTHER_NAMES = '_OTHER';

/** How many names are shown. */
const MAX_NAMES = 50;
/** How many have a row of their own: more than are shown, or names that are as busy would take the rows of each other. */
const MAX_ROWS = 200;
/** How many names without a row are counted at a time, to find those that deserve one. */
const MAX_CANDIDATES = 256;

interface Row {
  readonly name: string;
  readonly slices: SlicedTally;
}

/**
 * The traffic of the last minute by names that clients choose. Clients can invent names, so the memory is bounded: 200
 * names have a row, the others share one. The first names get rows. At the end of each slice, names with more requests
 * than the weakest rows take their places; what an evicted row has counted moves to the common row. Every name with more
 * than 1/257 of the requests without a row is among the candidates (Misra and Gries, "Finding repeated elements", 1982).
 */
export class TopNames {
  readonly #rows = new Map<string, Row>();
  readonly #others: Row = { name: OTHER_NAMES, slices: new SlicedTally(WINDOW_SLICES) };
  readonly #candidates = new Map<string, number>();

  /** Counts a request that ends in this slice. Returns the name of its row. */
  add(name: string, slice: number, request: CountedRequest): string {
    const row = this.#rows.get(name) ?? this.#createRow(name) ?? this.#others;
    row.slices.at(slice).add(request);
    if (row === this.#others && name !== OTHER_NAMES) this.#countCandidate(name);
    return row.name;
  }

  /** Counts GPU time and its cost in a slice, in the row of this name. */
  addGpuTime(row: string, slice: number, seconds: number, cost: number): void {
    (this.#rows.get(row) ?? this.#others).slices.addGpuTime(slice, seconds, cost);
  }

  /** Gives the rows to the names that need them. Call it when `slice` has ended. */
  endSlice(slice: number): void {
    for (const { name, slices } of this.#rows.values()) {
      if (slices.newest <= slice - WINDOW_SLICES) this.#rows.delete(name);
    }
    if (this.#candidates.size === 0) return;
    const weakestFirst = [...this.#rows.values()]
      .map((row) => ({ row, weight: toWeight(row.slices, slice) }))
      .sort((a, b) => a.weight - b.weight);
    const strongestFirst = [...this.#candidates].sort(([, a], [, b]) => b - a);
    this.#candidates.clear();
    for (const [name, count] of strongestFirst) {
      if (this.#createRow(name) !== null) continue;
      const weakest = weakestFirst.shift();
      if (weakest === undefined || weakest.weight >= count) return;
      this.#others.slices.merge(weakest.row.slices);
      this.#rows.delete(weakest.row.name);
      this.#createRow(name);
    }
  }

  /** The sums of the minute whose newest slice is `current`: of the 50 busiest names, and of all others. None is empty. */
  sumsUntil(current: number): readonly (readonly [name: string, sum: Tally])[] {
    const toSum = ({ name, slices }: Row) => [name, slices.sumUntil(current)] as const;
    const sums = [...this.#rows.values()].map(toSum).sort(([, a], [, b]) => b.requests - a.requests);
    const others = toSum(this.#others);
    for (const [, sum] of sums.splice(MAX_NAMES)) others[1].merge(sum);
    return [...sums, others].filter(([, sum]) => sum.requests > 0);
  }

  /** Null if all rows are taken. */
  #createRow(name: string): Row | null {
    if (this.#rows.size >= MAX_ROWS || name === OTHER_NAMES) return null;
    const row = { name: toOwnMemory(name), slices: new SlicedTally(WINDOW_SLICES) };
    this.#rows.set(row.name, row);
    return row;
  }

  #countCandidate(name: string): void {
    const count = this.#candidates.get(name);
    if (count !== undefined) this.#candidates.set(name, count + 1);
    else if (this.#candidates.size < MAX_CANDIDATES) this.#candidates.set(toOwnMemory(name), 1);
    else this.#countDown();
  }

  #countDown(): void {
    for (const [name, count] of this.#candidates) {
      if (count === 1) this.#candidates.delete(name);
      else this.#candidates.set(name, count - 1);
    }
  }
}

/** A row counts with its last slice, or with its average slice: a name with a pause keeps its row for a while. */
function toWeight(slices: SlicedTally, slice: number): number {
  const average = slices.sumUntil(slice).requests / WINDOW_SLICES;
  return Math.max(slices.find(slice)?.requests ?? 0, average);
}

/** A string that V8 cut from another one keeps all of that in memory: here, the head of a request. */
function toOwnMemory(name: string): string {
  return Buffer.from(name).toString();
}
