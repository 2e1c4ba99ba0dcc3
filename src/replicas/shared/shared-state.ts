import { tryAddOne } from '../control/try-add-one.ts';
import { REACHABILITIES, type Reachability } from '../reachability.ts';
import { HealthTable, healthBoardBytes } from './health-table.ts';
import { WaitTable, waitingBoardWords } from './wait-table.ts';

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
  readonly #eligibilityVersion: Int32Array;
  readonly #cursors: Int32Array;
  /** Requests in flight by replica: the sum of the rows, to be read and reserved in one step. */
  readonly #inflight: Int32Array;
  readonly #inflightRows: readonly Int32Array[];
  /** By replica: the place of what is known in REACHABILITIES. */
  readonly #reachability: Int32Array;
  /** Who fails. */
  readonly health: HealthTable;
  /** Who waits for a replica that is at its `max_inflight`. */
  readonly waiting: WaitTable;

  constructor(memory: SharedStateMemory) {
    const { buffer, workerCount } = memory;
    const layout = layOut(workerCount);
    this.memory = memory;
    this.#eligibilityVersion = new Int32Array(buffer, layout.eligibilityVersion, 1);
    this.#flags = new Int32Array(buffer, layout.flags, MAX_REPLICAS);
    this.#cursors = new Int32Array(buffer, layout.cursors, MAX_CURSORS);
    this.#inflight = new Int32Array(buffer, layout.inflight, MAX_REPLICAS);
    this.#inflightRows = layout.inflightRows.map((offset) => new Int32Array(buffer, offset, MAX_REPLICAS));
    this.#reachability = new Int32Array(buffer, layout.reachability, MAX_REPLICAS);
    this.health = new HealthTable(buffer, layout.health, MAX_REPLICAS, () => this.#changeStanding());
    const waitingWords = new Int32Array(buffer, layout.waiting, waitingBoardWords(workerCount, MAX_REPLICAS));
    this.waiting = new WaitTable(waitingWords, workerCount, MAX_REPLICAS);
  }

  /** Changes with every drain and undrain, and when a replica begins or ceases to fail. */
  get eligibilityVersion(): number {
    return Atomics.load(this.#eligibilityVersion, 0);
  }

  isDrained(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.drained);
  }

  setDrained(slot: number, isDrained: boolean): void {
    this.#setFlag(slot, FLAG.drained, isDrained);
    this.health.forget(slot);
    this.noteReachability(slot, 'unknown');
    this.#changeStanding();
    this.waiting.ring();
  }

  /** Whether a replica answers, as far as requests and probes have shown. */
  reachabilityOf(slot: number): Reachability {
    return REACHABILITIES[Atomics.load(this.#reachability, slot)] ?? 'unknown';
  }

  /** Notes what a request or a probe has shown. Called for every answer: it writes what is new only. */
  noteReachability(slot: number, reachability: Reachability): void {
    const place = REACHABILITIES.indexOf(reachability);
    if (Atomics.load(this.#reachability, slot) !== place) Atomics.store(this.#reachability, slot, place);
  }

  refusesIncludeUsage(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.refusesIncludeUsage);
  }

  setRefusesIncludeUsage(slot: number, refuses: boolean): void {
    this.#setFlag(slot, FLAG.refusesIncludeUsage, refuses);
  }

  /** Requests in flight on a replica, from all workers. */
  inflightOf(slot: number): number {
    return Atomics.load(this.#inflight, slot);
  }

  /** Requests that a worker has in flight on a replica. */
  inflightOfWorker(worker: number, slot: number): number {
    return Atomics.load(this.#rowOf(worker), slot);
  }

  /**
   * Counts one request more that a worker has in flight, unless there are so many already: then answers false. The sum
   * is counted up before the row, and down after it: a worker that ends in between leaves one too many, never too few.
   */
  beginInflight(worker: number, slot: number, limit: number | null): boolean {
    const row = this.#rowOf(worker);
    if (limit === null) Atomics.add(this.#inflight, slot, 1);
    else if (!tryAddOne(this.#inflight, slot, limit)) return false;
    Atomics.add(row, slot, 1);
    return true;
  }

  /** Counts one request less that a worker has in flight; returns how many it has now. */
  endInflight(worker: number, slot: number): number {
    const rest = Atomics.sub(this.#rowOf(worker), slot, 1) - 1;
    Atomics.sub(this.#inflight, slot, 1);
    this.waiting.ring();
    return rest;
  }

  /** Takes away what a worker that ended had in flight, and in line. */
  clearWorker(worker: number): void {
    const row = this.#rowOf(worker);
    for (let slot = 0; slot < row.length; slot++) {
      Atomics.sub(this.#inflight, slot, Atomics.exchange(row, slot, 0));
    }
    this.waiting.clearWorker(worker);
  }

  /** Makes a slot that no worker uses ready for another replica. */
  clearSlot(slot: number): void {
    Atomics.store(this.#flags, slot, 0);
    this.health.forget(slot);
    this.noteReachability(slot, 'unknown');
    Atomics.store(this.#inflight, slot, 0);
    for (const row of this.#inflightRows) Atomics.store(row, slot, 0);
  }

  /** The place in its rotation of the replica whose turn is next. */
  cursorAt(cursor: number): number {
    return Atomics.load(this.#cursors, cursor);
  }

  /** Moves a cursor, unless another thread has moved it from `from` in the meantime: then answers false. */
  moveCursor(cursor: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#cursors, cursor, from, to) === from;
  }

  #changeStanding(): void {
    Atomics.add(this.#eligibilityVersion, 0, 1);
  }

  #rowOf(worker: number): Int32Array {
    const row = this.#inflightRows[worker];
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
    // At a multiple of 8.
    health: take(healthBoardBytes(MAX_REPLICAS) / Int32Array.BYTES_PER_ELEMENT),
    eligibilityVersion: take(1),
    flags: take(MAX_REPLICAS),
    cursors: take(MAX_CURSORS),
    inflight: take(MAX_REPLICAS),
    reachability: take(MAX_REPLICAS),
    inflightRows: Array.from({ length: workerCount }, () => take(MAX_REPLICAS)),
    waiting: take(waitingBoardWords(workerCount, MAX_REPLICAS)),
    endBytes,
  };
}
