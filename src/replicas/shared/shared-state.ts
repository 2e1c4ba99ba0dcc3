import { GpuTimeTable, toGpuTimeShapes } from '#replicas/gpu-time';
import { HEALTH_COLUMNS, HealthTable } from '#replicas/health-state';
import { RAMP_COLUMNS, type Ramp, RampTable } from '#replicas/ramps';
import {
  SilenceLimits,
  SilenceTable,
  SilentHolders,
  toSilenceLimitShapes,
  toSilenceShapes,
  toSilentHolderShapes,
} from '#replicas/silence';
import { createSharedClock, openTables, type SharedTable, sizeOfTables, tryIncrement } from '#shared-memory';
import { REACHABILITY_COLUMNS, ReachabilityTable } from './reachability-table.ts';
import { toWaitShapes, WaitTable } from './wait-table.ts';

/** Replicas at one time, including removed ones that still finish requests. */
export const MAX_REPLICAS = 6144;

/** Round-robin cursors. The registry's `CursorAllocator` assigns them to models. */
export const MAX_CURSORS = 16_384;

/** Cursors that always exist. */
export const CURSORS = { all: 0, unknownModels: 1, firstOfModels: 2 } as const;

const FLAG = { drained: 1 << 0, refusesIncludeUsage: 1 << 1 } as const;

/** One row for each slot. */
const REPLICA_COLUMNS = {
  /** Bits of FLAG. */
  flags: 'int32',
  /** Requests in flight of all workers: the sum of `inflightByWorker`, so that one step can check and count. */
  inflight: 'int32',
} as const;

/** The memory itself, which can be passed to another thread. */
export interface SharedStateMemory {
  readonly buffer: SharedArrayBuffer;
  readonly workerCount: number;
}

/** Reserves the memory for so many workers, filled with zeros. */
export function allocateSharedState(workerCount: number): SharedStateMemory {
  return { buffer: new SharedArrayBuffer(sizeOfTables(toShapes(workerCount))), workerCount };
}

/**
 * What all threads of a gateway share about its replicas: drained flags, requests in flight, health, reachability,
 * ramps, GPU time, silences, waiting requests and round-robin cursors. Each replica has a slot, its row in the tables.
 * All cells are read and written with Atomics; no thread ever blocks.
 *
 * Requests in flight are also counted by worker, so that those of a worker that died can be subtracted.
 */
export class SharedState {
  readonly memory: SharedStateMemory;
  readonly #replicas: SharedTable<typeof REPLICA_COLUMNS>;
  readonly #inflightByWorker: Int32Array;
  readonly #handedOver: Int32Array;
  readonly #cursors: Int32Array;
  readonly #eligibilityVersion: Int32Array;
  readonly health: HealthTable;
  readonly reachability: ReachabilityTable;
  readonly ramps: RampTable;
  readonly gpuTimes: GpuTimeTable;
  readonly silences: SilenceTable;
  readonly silenceLimits: SilenceLimits;
  readonly silentHolders: SilentHolders;
  readonly waiting: WaitTable;

  /** @param nowMs shows the same time in all threads, in milliseconds */
  constructor(memory: SharedStateMemory, nowMs: () => number = createSharedClock()) {
    const tables = openTables(memory.buffer, toShapes(memory.workerCount));
    this.memory = memory;
    this.#replicas = tables.replicas;
    this.#inflightByWorker = tables.inflightByWorker.inflight;
    this.#handedOver = tables.handedOver.count;
    this.#cursors = tables.cursors.index;
    this.#eligibilityVersion = tables.eligibility.version;
    this.health = new HealthTable(tables.health, nowMs, () => this.#changeEligibility());
    this.reachability = new ReachabilityTable(tables.reachability, nowMs);
    this.ramps = new RampTable(tables.ramps, nowMs);
    const size = { workerCount: memory.workerCount, slotCount: MAX_REPLICAS };
    this.gpuTimes = new GpuTimeTable(tables, size, nowMs);
    this.silences = new SilenceTable(tables, size, nowMs);
    this.silenceLimits = new SilenceLimits(tables);
    this.silentHolders = new SilentHolders(tables);
    this.waiting = new WaitTable(tables, MAX_REPLICAS);
  }

  /** Goes up with every drain and undrain, and when a replica begins or ceases to fail. */
  get eligibilityVersion(): number {
    return Atomics.load(this.#eligibilityVersion, 0);
  }

  isDrained(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.drained);
  }

  /** `ramp`: how its turns grow after an undrain; null: it gets all of them at once. */
  setDrained(slot: number, isDrained: boolean, ramp: Ramp | null = null): void {
    // Before the flag, so that no thread gives it a turn too many.
    this.ramps.set(slot, isDrained ? null : ramp);
    this.#setFlag(slot, FLAG.drained, isDrained);
    this.health.forget(slot);
    this.reachability.forget(slot);
    this.#changeEligibility();
    this.waiting.wake();
  }

  refusesIncludeUsage(slot: number): boolean {
    return this.#hasFlag(slot, FLAG.refusesIncludeUsage);
  }

  noteUsageRefused(slot: number): void {
    this.#setFlag(slot, FLAG.refusesIncludeUsage, true);
  }

  /** Requests in flight on a replica, of all workers. After the death of a worker it may stay one too high. */
  inflightOf(slot: number): number {
    return Atomics.load(this.#replicas.inflight, slot);
  }

  /** The same, exact after the death of a worker too. It reads a cell for each worker. */
  heldOf(slot: number): number {
    let count = 0;
    for (let worker = 0; worker < this.memory.workerCount; worker++) {
      count += this.inflightOfWorker(worker, slot);
    }
    return count;
  }

  /** Requests in flight on a replica, of one worker. */
  inflightOfWorker(worker: number, slot: number): number {
    return Atomics.load(this.#inflightByWorker, rowOf(worker, slot));
  }

  /**
   * Counts a request in flight and returns true, or returns false if `limit` requests are in flight already. The sum
   * goes up before the worker's count and down after it: if the worker dies in between, the sum is one too high, never
   * too low.
   */
  beginInflight(worker: number, slot: number, limit: number | null): boolean {
    const { inflight } = this.#replicas;
    if (limit === null) Atomics.add(inflight, slot, 1);
    else if (!tryIncrement(inflight, slot, limit)) return false;
    Atomics.add(this.#inflightByWorker, rowOf(worker, slot), 1);
    return true;
  }

  /** Counts a request that ended. Returns how many the worker still has in flight on the replica. */
  endInflight(worker: number, slot: number): number {
    const rest = Atomics.sub(this.#inflightByWorker, rowOf(worker, slot), 1) - 1;
    Atomics.sub(this.#replicas.inflight, slot, 1);
    this.waiting.wake();
    return rest;
  }

  /**
   * A replica goes on with a response after its answer: a worker counts it before the request ceases to be in flight, and
   * until the main thread has taken it over.
   */
  handOver(worker: number, slot: number): void {
    Atomics.add(this.#handedOver, rowOf(worker, slot), 1);
  }

  /** The main thread has taken over one of those. */
  noteTakenOver(worker: number, slot: number): void {
    Atomics.sub(this.#handedOver, rowOf(worker, slot), 1);
  }

  /** How many of a replica the main thread has not taken over yet. */
  handedOverOf(slot: number): number {
    let count = 0;
    for (let worker = 0; worker < this.memory.workerCount; worker++) {
      count += Atomics.load(this.#handedOver, rowOf(worker, slot));
    }
    return count;
  }

  /** What a worker that ended had counted and not handed over: how many, by slot. */
  leftOverOf(worker: number): ReadonlyMap<number, number> {
    const left = new Map<number, number>();
    for (let slot = 0; slot < MAX_REPLICAS; slot++) {
      const count = Atomics.load(this.#handedOver, rowOf(worker, slot));
      if (count > 0) left.set(slot, count);
    }
    return left;
  }

  /** Removes the requests of a worker that ended: those in flight and those that wait. */
  clearWorker(worker: number): void {
    for (let slot = 0; slot < MAX_REPLICAS; slot++) {
      const count = Atomics.exchange(this.#inflightByWorker, rowOf(worker, slot), 0);
      Atomics.sub(this.#replicas.inflight, slot, count);
    }
    this.gpuTimes.clearWorker(worker);
    this.silences.clearWorker(worker);
    this.silentHolders.clearWorker(worker);
    this.waiting.clearWorker(worker);
  }

  /** Prepares a slot that no worker uses for another replica. */
  clearSlot(slot: number): void {
    Atomics.store(this.#replicas.flags, slot, 0);
    this.ramps.set(slot, null);
    this.health.forget(slot);
    this.reachability.clear(slot);
    this.gpuTimes.clear(slot);
    this.silences.clear(slot);
    Atomics.store(this.#replicas.inflight, slot, 0);
    for (let worker = 0; worker < this.memory.workerCount; worker++) {
      Atomics.store(this.#inflightByWorker, rowOf(worker, slot), 0);
      Atomics.store(this.#handedOver, rowOf(worker, slot), 0);
    }
  }

  /** The index of the candidate that is next. */
  cursorAt(cursor: number): number {
    return Atomics.load(this.#cursors, cursor);
  }

  /** Moves a cursor and returns true, or returns false if another thread has moved it away from `from`. */
  moveCursor(cursor: number, from: number, to: number): boolean {
    return Atomics.compareExchange(this.#cursors, cursor, from, to) === from;
  }

  #changeEligibility(): void {
    Atomics.add(this.#eligibilityVersion, 0, 1);
  }

  #hasFlag(slot: number, flag: number): boolean {
    return (Atomics.load(this.#replicas.flags, slot) & flag) !== 0;
  }

  #setFlag(slot: number, flag: number, isSet: boolean): void {
    if (isSet) Atomics.or(this.#replicas.flags, slot, flag);
    else Atomics.and(this.#replicas.flags, slot, ~flag);
  }
}

/** The tables, in the order in which they lie in memory. */
function toShapes(workerCount: number) {
  return {
    replicas: { rowCount: MAX_REPLICAS, columns: REPLICA_COLUMNS },
    health: { rowCount: MAX_REPLICAS, columns: HEALTH_COLUMNS },
    reachability: { rowCount: MAX_REPLICAS, columns: REACHABILITY_COLUMNS },
    ramps: { rowCount: MAX_REPLICAS, columns: RAMP_COLUMNS },
    cursors: { rowCount: MAX_CURSORS, columns: { index: 'int32' } },
    /** One row. */
    eligibility: { rowCount: 1, columns: { version: 'int32' } },
    /** These two have one row for each slot of each worker. */
    inflightByWorker: { rowCount: workerCount * MAX_REPLICAS, columns: { inflight: 'int32' } },
    handedOver: { rowCount: workerCount * MAX_REPLICAS, columns: { count: 'int32' } },
    ...toGpuTimeShapes(workerCount, MAX_REPLICAS),
    ...toSilenceShapes(workerCount, MAX_REPLICAS),
    ...toSilenceLimitShapes(MAX_CURSORS),
    ...toSilentHolderShapes(workerCount),
    ...toWaitShapes(workerCount, MAX_REPLICAS),
  } as const;
}

/** The row of `inflightByWorker`. */
function rowOf(worker: number, slot: number): number {
  return worker * MAX_REPLICAS + slot;
}
