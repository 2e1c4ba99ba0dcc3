/** Replicas that can be known at one time, those included that are removed and still finish requests. */
export const MAX_REPLICAS = 4096;

/** Turns that can be kept apart; see `CURSORS` and the registry, which hands them out by model. */
export const MAX_CURSORS = 16_384;

/** Cursors that are always there. */
export const CURSORS = { all: 0, unknownModels: 1, firstOfModels: 2 } as const;

const FLAG = { drained: 1 << 0, refusesIncludeUsage: 1 << 1 } as const;

/** The memory itself, as it can be handed to another thread. */
export interface SharedStateMemory {
  readonly buffer: SharedArrayBuffer;
  readonly workerCount: number;
}

/** Reserves the memory for so many workers, everything in it at zero. */
export function allocateSharedState(workerCount: number): SharedStateMemory {
  return { buffer: new SharedArrayBuffer(layOut(workerCount).endBytes), workerCount };
}

/**
 * What all threads of a gateway know of its replicas at the same moment: who is drained, what is in flight, whose
 * turn it is. A replica is a slot here. Every word is read and written with Atomics; nobody ever waits.
 *
 * In-flight requests are counted by worker, one row each: what a worker that died had in flight can be taken away.
 */
export class SharedState {
  readonly memory: SharedStateMemory;
  readonly #flags: Int32Array;
  readonly #flagVersion: Int32Array;
  readonly #cursors: Int32Array;
  readonly #inflight: readonly Int32Array[];

  constructor(memory: SharedStateMemory) {
    const { buffer, workerCount } = memory;
    const layout = layOut(workerCount);
    this.memory = memory;
    this.#flagVersion = new Int32Array(buffer, layout.flagVersion, 1);
    this.#flags = new Int32Array(buffer, layout.flags, MAX_REPLICAS);
    this.#cursors = new Int32Array(buffer, layout.cursors, MAX_CURSORS);
    this.#inflight = layout.inflight.map((offset) => new Int32Array(buffer, offset, MAX_REPLICAS));
  }

  /** Changes with every drain and undrain: what was derived from the flags before is out of date. */
  get drainVersion(): number {
    return Atomics.load(this.#flagVersion, 0);
  }

  isDrained(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.drained);
  }

  setDrained(slot: number, isDrained: boolean): void {
    this.#setFlag(slot, FLAG.drained, isDrained);
    Atomics.add(this.#flagVersion, 0, 1);
  }

  refusesIncludeUsage(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.refusesIncludeUsage);
  }

  setRefusesIncludeUsage(slot: number, refuses: boolean): void {
    this.#setFlag(slot, FLAG.refusesIncludeUsage, refuses);
  }

  /** Requests in flight on a replica, from all workers. */
  inflightOf(slot: number): number {
    let sum = 0;
    for (const row of this.#inflight) sum += Atomics.load(row, slot);
    return sum;
  }

  /** Counts one request more, or less, that a worker has in flight; returns how many those are now. */
  addInflight(worker: number, slot: number, change: 1 | 0 | -1): number {
    const row = this.#rowOf(worker);
    return Atomics.add(row, slot, change) + change;
  }

  /** Takes away what a worker that ended had in flight. */
  clearWorker(worker: number): void {
    const row = this.#rowOf(worker);
    for (let slot = 0; slot < row.length; slot++) Atomics.store(row, slot, 0);
  }

  /** Makes a slot that no worker uses ready for another replica. */
  clearSlot(slot: number): void {
    Atomics.store(this.#flags, slot, 0);
    for (const row of this.#inflight) Atomics.store(row, slot, 0);
  }

  /** The place in its rotation of the replica whose turn is next. */
  cursorAt(cursor: number): number {
    return Atomics.load(this.#cursors, cursor);
  }

  /** Moves a cursor, unless another thread has moved it from `from` in the meantime: then answers false. */
  moveCursor(cursor: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#cursors, cursor, from, to) === from;
  }

  #rowOf(worker: number): Int32Array {
    const row = this.#inflight[worker];
    if (row === undefined) throw new RangeError(`there is no worker ${worker}`);
    return row;
  }

  #hasFlag(slot: number, flag: number): boolean {
    return (Atomics.load(this.#flags, slot) & flag) !== 0;
  }

  #setFlag(slot: number, flag: number, isSet: boolean): void {
    if (isSet) Atomics.or(this.#flags, slot, flag);
    else Atomics.and(this.#flags, slot, ~flag);
  }
}

/** Where each part begins, in bytes. The one place that knows the order. */
function layOut(workerCount: number) {
  let endBytes = 0;
  const take = (words: number) => {
    const offset = endBytes;
    endBytes += words * Int32Array.BYTES_PER_ELEMENT;
    return offset;
  };
  return {
    flagVersion: take(1),
    flags: take(MAX_REPLICAS),
    cursors: take(MAX_CURSORS),
    inflight: Array.from({ length: workerCount }, () => take(MAX_REPLICAS)),
    endBytes,
  };
}
