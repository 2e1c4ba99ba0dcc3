import type { SharedTable } from '#shared-memory';

/** The limits and replicas of which each worker tells how many silent streams hold places: the pairs with most. */
const MAX_SILENT_HOLDERS = 512;

/** A cell has the row of a limit, the slot of a replica, and how many streams: from the highest bits to the lowest. */
const SLOT_BITS = 12n;
const COUNT_BITS = 32n;

/** The table, for so many workers. A cell of 0 is empty. */
export function toSilentHolderShapes(workerCount: number) {
  return {
    silentHolders: { rowCount: workerCount * MAX_SILENT_HOLDERS, columns: { streams: 'int64' } },
  } as const;
}

type Shapes = ReturnType<typeof toSilentHolderShapes>;
type Tables = { readonly [Name in keyof Shapes]: SharedTable<Shapes[Name]['columns']> };

/** Silent streams that hold a place in the same limit, and run on the same replica. */
export interface SilentHolder {
  /** The row of the limit. */
  readonly row: number;
  readonly slot: number;
  readonly count: number;
}

/** In which limits of clients and tenants silent streams hold places, as the workers sample it. */
export class SilentHolders {
  readonly #cells: BigInt64Array;

  constructor({ silentHolders }: Tables) {
    this.#cells = silentHolders.streams;
  }

  /** Notes all that a worker has seen. */
  note(worker: number, holders: readonly SilentHolder[]): void {
    const told =
      holders.length > MAX_SILENT_HOLDERS ? holders.toSorted((a, b) => b.count - a.count) : holders;
    const first = worker * MAX_SILENT_HOLDERS;
    for (let index = 0; index < MAX_SILENT_HOLDERS; index++) {
      const holder = told[index];
      // Cells are filled from the first one on.
      if (holder === undefined && Atomics.load(this.#cells, first + index) === 0n) return;
      Atomics.store(this.#cells, first + index, holder === undefined ? 0n : toCell(holder));
    }
  }

  /** What all workers have seen when each sampled last. A pair may be there more than once. */
  read(): readonly SilentHolder[] {
    const holders: SilentHolder[] = [];
    for (let first = 0; first < this.#cells.length; first += MAX_SILENT_HOLDERS) {
      for (let index = 0; index < MAX_SILENT_HOLDERS; index++) {
        const cell = Atomics.load(this.#cells, first + index);
        if (cell === 0n) break;
        holders.push(fromCell(cell));
      }
    }
    return holders;
  }

  /** Removes what a worker that ended has noted. */
  clearWorker(worker: number): void {
    this.note(worker, []);
  }
}

function toCell({ row, slot, count }: SilentHolder): bigint {
  return (((BigInt(row) << SLOT_BITS) | BigInt(slot)) << COUNT_BITS) | BigInt(count);
}

function fromCell(cell: bigint): SilentHolder {
  const place = Number(cell >> COUNT_BITS);
  const slotCount = 2 ** Number(SLOT_BITS);
  return {
    row: Math.floor(place / slotCount),
    slot: place % slotCount,
    count: Number(BigInt.asUintN(Number(COUNT_BITS), cell)),
  };
}
