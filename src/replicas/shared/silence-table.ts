import type { SharedTable } from '#shared-memory';

/** What one thread has seen of a replica, in milliseconds of the clock that all threads share. */
export interface Silence {
  /** When a byte of a response last came; null if that is not known. */
  readonly heardMs: number | null;
  /** Since when nothing has come on the request in flight that has waited longest; null: none waits. */
  readonly waitingSinceMs: number | null;
}

/** The tables, for so many workers and slots. A time of 0 stands for none. */
export function toSilenceShapes(workerCount: number, slotCount: number) {
  return {
    /** One row for each slot. */
    heard: { rowCount: slotCount, columns: { atMs: 'int64' } },
    /** One row for each slot of each worker. */
    waits: { rowCount: workerCount * slotCount, columns: { sinceMs: 'int64' } },
    /** One row for each worker. */
    samples: { rowCount: workerCount, columns: { atMs: 'int64' } },
  } as const;
}

type Shapes = ReturnType<typeof toSilenceShapes>;
type Tables = { readonly [Name in keyof Shapes]: SharedTable<Shapes[Name]['columns']> };

/** How long replicas have been silent, as the workers sample it, shared by all threads of a gateway. */
export class SilenceTable {
  readonly #tables: Tables;
  readonly #size: { readonly workerCount: number; readonly slotCount: number };
  /** Shows the same time in all threads, in milliseconds. */
  readonly nowMs: () => number;

  constructor(
    tables: Tables,
    size: { readonly workerCount: number; readonly slotCount: number },
    nowMs: () => number,
  ) {
    this.#tables = tables;
    this.#size = size;
    this.nowMs = nowMs;
  }

  /** Notes what a worker has seen of a replica. */
  note(worker: number, slot: number, { heardMs, waitingSinceMs }: Silence): void {
    const { heard, waits } = this.#tables;
    const at = toCell(heardMs);
    let before = Atomics.load(heard.atMs, slot);
    while (before < at) {
      const found = Atomics.compareExchange(heard.atMs, slot, before, at);
      if (found === before) break;
      before = found;
    }
    Atomics.store(waits.sinceMs, this.#rowOf(worker, slot), toCell(waitingSinceMs));
  }

  /** Notes that a worker has now noted all of its replicas. */
  noteSampled(worker: number): void {
    Atomics.store(this.#tables.samples.atMs, worker, toCell(this.nowMs()));
  }

  /** What all workers together have seen of a replica. */
  silenceOf(slot: number): Silence {
    let oldest = 0n;
    for (let worker = 0; worker < this.#size.workerCount; worker++) {
      const since = Atomics.load(this.#tables.waits.sinceMs, this.#rowOf(worker, slot));
      if (since !== 0n && (oldest === 0n || since < oldest)) oldest = since;
    }
    return {
      heardMs: fromCell(Atomics.load(this.#tables.heard.atMs, slot)),
      waitingSinceMs: fromCell(oldest),
    };
  }

  /** When the worker that is furthest behind has sampled; null: none has. */
  get oldestSampleMs(): number | null {
    let oldest = 0n;
    for (const [worker] of this.#tables.samples.atMs.entries()) {
      const at = Atomics.load(this.#tables.samples.atMs, worker);
      if (at !== 0n && (oldest === 0n || at < oldest)) oldest = at;
    }
    return fromCell(oldest);
  }

  /** Removes what a worker that ended, or samples no more, has in flight. */
  clearWorker(worker: number): void {
    Atomics.store(this.#tables.samples.atMs, worker, 0n);
    for (let slot = 0; slot < this.#size.slotCount; slot++) {
      Atomics.store(this.#tables.waits.sinceMs, this.#rowOf(worker, slot), 0n);
    }
  }

  /** Prepares a slot for another replica. */
  clear(slot: number): void {
    Atomics.store(this.#tables.heard.atMs, slot, 0n);
    for (let worker = 0; worker < this.#size.workerCount; worker++) {
      Atomics.store(this.#tables.waits.sinceMs, this.#rowOf(worker, slot), 0n);
    }
  }

  #rowOf(worker: number, slot: number): number {
    return worker * this.#size.slotCount + slot;
  }
}

/** How long a replica may be silent, in milliseconds; `auto`: for as long as is usual. */
export type FrozenAfter = number | 'auto';

const USUAL_SAMPLE_MS = 1_000;

/** How often workers sample, if a replica may be silent for so long. */
export function toSampleMs(frozenAfterMs: FrozenAfter): number {
  return frozenAfterMs === 'auto' ? USUAL_SAMPLE_MS : Math.min(USUAL_SAMPLE_MS, frozenAfterMs / 4);
}

function toCell(ms: number | null): bigint {
  return ms === null ? 0n : BigInt(Math.max(1, Math.round(ms)));
}

function fromCell(cell: bigint): number | null {
  return cell === 0n ? null : Number(cell);
}
