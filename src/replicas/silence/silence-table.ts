import type { SharedTable } from '#shared-memory';

/** What one thread has seen of a replica, in milliseconds of the clock that all threads share. */
export interface Silence {
  /** When a byte of a response last came; null if that is not known. */
  readonly heardMs: number | null;
  /** Since when nothing has come on the request in flight that has waited longest; null: none waits. */
  readonly waitingSinceMs: number | null;
}

/** The streams that run on a replica, and those of them that are silent for longer than their peers make likely. */
export interface Streams {
  readonly running: number;
  readonly silent: number;
  /**
   * Those of the silent ones that count against the replica: they fell silent after `SilenceTable.judgeFrom`, and it went
   * on with others, or began later ones.
   */
  readonly stuck: number;
  /** Since when nothing has come on the one that is silent for longest; null: none is silent. */
  readonly oldestMs: number | null;
  /** When the last of `stuck` became one of them; null: there is none. */
  readonly newestMs: number | null;
}

/** No stream runs. */
const NO_STREAMS: Streams = { running: 0, silent: 0, stuck: 0, oldestMs: null, newestMs: null };

/** The tables, for so many workers and slots. A time of 0 stands for none. */
export function toSilenceShapes(workerCount: number, slotCount: number) {
  return {
    /** One row for each slot. */
    heard: { rowCount: slotCount, columns: { atMs: 'int64' } },
    /** One row for each slot of each worker. */
    waits: { rowCount: workerCount * slotCount, columns: { sinceMs: 'int64' } },
    /** The same. */
    streams: {
      rowCount: workerCount * slotCount,
      columns: { running: 'int32', silent: 'int32', stuck: 'int32', oldestMs: 'int64', newestMs: 'int64' },
    },
    /** One row for each slot. */
    judged: { rowCount: slotCount, columns: { fromMs: 'int64' } },
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

  /** Notes the streams of a worker on a replica. */
  noteStreams(worker: number, slot: number, { running, silent, stuck, oldestMs, newestMs }: Streams): void {
    const { streams } = this.#tables;
    const row = this.#rowOf(worker, slot);
    Atomics.store(streams.running, row, running);
    Atomics.store(streams.silent, row, silent);
    Atomics.store(streams.stuck, row, stuck);
    Atomics.store(streams.oldestMs, row, toCell(oldestMs));
    Atomics.store(streams.newestMs, row, toCell(newestMs));
  }

  /** The streams of all workers on a replica, as they were when each sampled last. */
  streamsOf(slot: number): Streams {
    const { streams } = this.#tables;
    let [running, silent, stuck] = [0, 0, 0];
    let [oldest, newest] = [0n, 0n];
    for (let worker = 0; worker < this.#size.workerCount; worker++) {
      const row = this.#rowOf(worker, slot);
      running += Atomics.load(streams.running, row);
      silent += Atomics.load(streams.silent, row);
      stuck += Atomics.load(streams.stuck, row);
      const oldestHere = Atomics.load(streams.oldestMs, row);
      if (oldestHere !== 0n && (oldest === 0n || oldestHere < oldest)) oldest = oldestHere;
      const newestHere = Atomics.load(streams.newestMs, row);
      if (newestHere > newest) newest = newestHere;
    }
    return { running, silent, stuck, oldestMs: fromCell(oldest), newestMs: fromCell(newest) };
  }

  /** Counts only streams as stuck from now on that fall silent after this time. */
  judgeFrom(slot: number, ms: number): void {
    Atomics.store(this.#tables.judged.fromMs, slot, toCell(ms));
  }

  /** That time; 0 if there is none. */
  judgedFromOf(slot: number): number {
    return Number(Atomics.load(this.#tables.judged.fromMs, slot));
  }

  /** When a byte of a response last came, on any worker; null if that is not known. */
  heardOf(slot: number): number | null {
    return fromCell(Atomics.load(this.#tables.heard.atMs, slot));
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
    return { heardMs: this.heardOf(slot), waitingSinceMs: fromCell(oldest) };
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

  /** Removes what a worker that ended has in flight. */
  clearWorker(worker: number): void {
    Atomics.store(this.#tables.samples.atMs, worker, 0n);
    for (let slot = 0; slot < this.#size.slotCount; slot++) this.#clearRow(worker, slot);
  }

  /** Prepares a slot for another replica. */
  clear(slot: number): void {
    Atomics.store(this.#tables.heard.atMs, slot, 0n);
    Atomics.store(this.#tables.judged.fromMs, slot, 0n);
    for (let worker = 0; worker < this.#size.workerCount; worker++) this.#clearRow(worker, slot);
  }

  #clearRow(worker: number, slot: number): void {
    Atomics.store(this.#tables.waits.sinceMs, this.#rowOf(worker, slot), 0n);
    this.noteStreams(worker, slot, NO_STREAMS);
  }

  #rowOf(worker: number, slot: number): number {
    return worker * this.#size.slotCount + slot;
  }
}

const USUAL_SAMPLE_MS = 1_000;

/** How often workers sample, if a replica may be silent for so long. `auto`: for as long as is usual. Null: for ever. */
export function toSampleMs(frozenAfterMs: number | 'auto' | null): number {
  return typeof frozenAfterMs === 'number' ? Math.min(USUAL_SAMPLE_MS, frozenAfterMs / 4) : USUAL_SAMPLE_MS;
}

function toCell(ms: number | null): bigint {
  return ms === null ? 0n : BigInt(Math.max(1, Math.round(ms)));
}

function fromCell(cell: bigint): number | null {
  return cell === 0n ? null : Number(cell);
}
