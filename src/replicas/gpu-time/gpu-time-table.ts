import type { SharedTable } from '#shared-memory';
import {
  addUnrecorded,
  advance,
  beginLease,
  changeNothing,
  emptyState,
  endAll,
  endRecorded,
  endUnrecorded,
  forgetAll,
  type GpuAccount,
  type GpuTimeState,
  type LeaseBegin,
} from './split-gpu-time.ts';

/** The int32 cells of one state: two cache lines. Each number from `hourPrice` on is a double, in two cells. */
const CELL = { inflight: 0, gpuCount: 1, own: 2, hourPrice: 4, atMs: 6, time: 8, cost: 18 };
const ACCOUNT_CELL = { share: 0, busy: 2, idle: 4, unrecorded: 6, own: 8 };
const STATE_CELLS = 32;

/** The tables of GPU time. Each worker is a writer, and so is the main thread, which clears up after workers. */
export function toGpuTimeShapes(workerCount: number, slotCount: number) {
  const writerCount = workerCount + 1;
  return {
    /** One row for each slot: its current commit. */
    gpuTimes: { rowCount: slotCount, columns: { commit: 'int32' } },
    /** One row for each slot of each writer: the writer's last commit that another one has followed. */
    gpuTimeWriters: { rowCount: writerCount * slotCount, columns: { commit: 'int32' } },
    /** Two states for each writer of each slot. */
    gpuTimeStates: { rowCount: slotCount * writerCount * 2 * STATE_CELLS, columns: { cell: 'int32' } },
  } as const;
}

type GpuTimeTables = {
  readonly [Name in keyof ReturnType<typeof toGpuTimeShapes>]: SharedTable<
    ReturnType<typeof toGpuTimeShapes>[Name]['columns']
  >;
};

/** What a sum over a replica's GPUs is made of. */
interface GpuSums {
  /** While at least one lease was held. */
  readonly busy: number;
  /** While none was held. */
  readonly idle: number;
  /** The part of `busy` that belongs to no record: to requests that leave none, and to workers that died. */
  readonly unrecorded: number;
}

/** The GPU time of one replica since it was configured: that of all its GPUs together. */
export interface GpuTime {
  /** In milliseconds. */
  readonly ms: GpuSums;
  /** In units of the currency, and what an hour of one GPU costs now; null: it has no price. */
  readonly cost: (GpuSums & { readonly hourPrice: number }) | null;
}

/** One lease's part of a replica's GPU time. */
export interface GpuPart {
  readonly ms: number;
  /** In units of the currency; null: the replica had no price. */
  readonly cost: number | null;
}

/** What the GPU time of a replica is reckoned with. */
export interface GpuRates {
  readonly gpuCount: number | null;
  /** What an hour of one GPU costs. */
  readonly gpuHourPrice: number | null;
}

/**
 * The GPU time of the replicas, shared by all threads of a gateway. At each moment it is divided equally between the
 * leases that are held. A lease costs the same however many others there are: its part is what the share has grown by.
 * Its cost is divided likewise, at the price of each moment.
 *
 * No thread ever blocks, and one that is terminated at any point leaves a whole state. A writer fills a state of its own
 * that nobody reads, and then makes it current by one compare-and-swap. A commit is a number with a version and the place
 * of a state. Each writer has two states for each slot: its last commit stays as it is, so that what a dead writer held
 * is known. Before a commit is replaced, it is noted as its writer's last one.
 */
export class GpuTimeTable {
  readonly #commits: Int32Array;
  readonly #lastCommits: Int32Array;
  readonly #cells: Int32Array;
  readonly #slotCount: number;
  /** States of one slot. */
  readonly #stateCount: number;
  /** The low bits of a commit, which are the place of its state. The others are its version. */
  readonly #placeBits: number;
  readonly #nowMs: () => number;
  readonly #state: GpuTimeState = emptyState();
  readonly #double = new Float64Array(1);
  readonly #halves = new Int32Array(this.#double.buffer);

  /** @param nowMs shows the same time in all threads, in milliseconds */
  constructor(
    tables: GpuTimeTables,
    { workerCount, slotCount }: { readonly workerCount: number; readonly slotCount: number },
    nowMs: () => number,
  ) {
    this.#commits = tables.gpuTimes.commit;
    this.#lastCommits = tables.gpuTimeWriters.commit;
    this.#cells = tables.gpuTimeStates.cell;
    this.#slotCount = slotCount;
    this.#stateCount = (workerCount + 1) * 2;
    this.#placeBits = 32 - Math.clz32(this.#stateCount - 1);
    this.#nowMs = nowMs;
  }

  /** Takes over what a replica's GPU time is reckoned with from now on. Only the main thread calls this. */
  configure(slot: number, { gpuCount, gpuHourPrice }: GpuRates): void {
    this.#change(this.#main, slot, (state) => {
      state.gpuCount = gpuCount ?? 0;
      state.hourPrice = gpuHourPrice ?? Number.NaN;
    });
  }

  /** A lease begins. Returns what `end` needs. */
  begin(writer: number, slot: number): LeaseBegin {
    const { time, cost } = this.#change(writer, slot, beginLease);
    return { time: time.share, cost: cost.share };
  }

  /** A lease ends. Returns its part of the replica's GPU time. */
  end(
    writer: number,
    slot: number,
    { began, isRecorded }: { readonly began: LeaseBegin; readonly isRecorded: boolean },
  ): GpuPart {
    const endLease = isRecorded ? endRecorded : endUnrecorded;
    const { time, cost, hourPrice } = this.#change(writer, slot, endLease, began);
    const ownCost = Math.max(0, cost.share - began.cost);
    return {
      ms: Math.max(0, time.share - began.time),
      // A price that was taken away meanwhile has left its part.
      cost: ownCost > 0 || hasPrice(hourPrice) ? ownCost : null,
    };
  }

  /** The record of a lease that ended is not made after all. */
  noteUnrecorded(writer: number, slot: number, { ms, cost }: GpuPart): void {
    this.#change(writer, slot, addUnrecorded, { time: ms, cost: cost ?? 0 });
  }

  /** The GPU time of a replica up to now. Its sums never go down. Only the main thread calls this. */
  timeOf(slot: number): GpuTime {
    // A commit: the clock of another thread may be behind, and the next value must not be lower.
    const { time, cost, hourPrice } = this.#change(this.#main, slot, changeNothing);
    return { ms: toSums(time), cost: hasPrice(hourPrice) ? { ...toSums(cost), hourPrice } : null };
  }

  /** Ends the leases of a worker that died. Their GPU time has no record. Only the main thread calls this. */
  clearWorker(worker: number): void {
    for (let slot = 0; slot < this.#slotCount; slot++) {
      // A thread that has followed the worker's last commit has noted it before.
      this.#note(slot, Atomics.load(this.#commits, slot));
      const own = this.#ownOf(worker, slot, emptyState());
      if (own.own === 0) continue;
      this.#change(this.#main, slot, (state) => endAll(state, own));
      // A commit of another writer: the worker that comes next begins with nothing.
      Atomics.store(this.#lastCommits, worker * this.#slotCount + slot, Atomics.load(this.#commits, slot));
    }
  }

  /** Prepares a slot that no worker uses for another replica. Only the main thread calls this. */
  clear(slot: number): void {
    this.#change(this.#main, slot, forgetAll);
    const commit = Atomics.load(this.#commits, slot);
    for (let writer = 0; writer < this.#main; writer++) {
      Atomics.store(this.#lastCommits, writer * this.#slotCount + slot, commit);
    }
  }

  /** The main thread as a writer. */
  get #main(): number {
    return this.#stateCount / 2 - 1;
  }

  /** Commits a change of the state as of now. The result is overwritten by the next change. */
  #change(
    writer: number,
    slot: number,
    change: (state: GpuTimeState, lease: LeaseBegin) => void,
    lease: LeaseBegin = NO_LEASE,
  ): Readonly<GpuTimeState> {
    const state = this.#state;
    for (;;) {
      const commit = Atomics.load(this.#commits, slot);
      if (!this.#note(slot, commit)) continue;
      this.#read(state, this.#offsetOf(slot, this.#placeOf(commit)));
      this.#ownOf(writer, slot, state);
      advance(state, this.#nowMs());
      change(state, lease);
      const place = this.#freePlaceOf(writer, slot);
      this.#write(state, this.#offsetOf(slot, place));
      const next = (((commit >>> this.#placeBits) + 1) << this.#placeBits) | place;
      // What was read belongs together: a state is written only after another commit has followed it.
      if (Atomics.compareExchange(this.#commits, slot, commit, next) === commit) return state;
    }
  }

  /** Notes a current commit as the last one of its writer. Returns false if another one has followed it. */
  #note(slot: number, commit: number): boolean {
    const row = this.#writerOf(commit) * this.#slotCount + slot;
    const noted = Atomics.load(this.#lastCommits, row);
    if (noted === commit) return true;
    if (Atomics.load(this.#commits, slot) !== commit) return false;
    // If this fails, another thread has noted it. A thread that comes too late fails, because what it expects is gone.
    Atomics.compareExchange(this.#lastCommits, row, noted, commit);
    return true;
  }

  /** Fills in what a writer holds itself. Its last commit must be noted. */
  #ownOf(writer: number, slot: number, state: GpuTimeState): GpuTimeState {
    const last = Atomics.load(this.#lastCommits, writer * this.#slotCount + slot);
    const isOwn = this.#writerOf(last) === writer;
    const offset = this.#offsetOf(slot, this.#placeOf(last));
    state.own = isOwn ? Atomics.load(this.#cells, offset + CELL.own) : 0;
    state.time.own = isOwn ? this.#readDouble(offset + CELL.time + ACCOUNT_CELL.own) : 0;
    state.cost.own = isOwn ? this.#readDouble(offset + CELL.cost + ACCOUNT_CELL.own) : 0;
    return state;
  }

  /** That of its two states which its last commit does not need. */
  #freePlaceOf(writer: number, slot: number): number {
    const last = Atomics.load(this.#lastCommits, writer * this.#slotCount + slot);
    return this.#writerOf(last) === writer ? this.#placeOf(last) ^ 1 : writer * 2;
  }

  #placeOf(commit: number): number {
    return commit & ((1 << this.#placeBits) - 1);
  }

  #writerOf(commit: number): number {
    return this.#placeOf(commit) >> 1;
  }

  #offsetOf(slot: number, place: number): number {
    return (slot * this.#stateCount + place) * STATE_CELLS;
  }

  #read(state: GpuTimeState, offset: number): void {
    state.inflight = Atomics.load(this.#cells, offset + CELL.inflight);
    state.gpuCount = Atomics.load(this.#cells, offset + CELL.gpuCount);
    state.hourPrice = this.#readDouble(offset + CELL.hourPrice);
    state.atMs = this.#readDouble(offset + CELL.atMs);
    this.#readAccount(state.time, offset + CELL.time);
    this.#readAccount(state.cost, offset + CELL.cost);
  }

  /** Without `own`, which is another state's. */
  #readAccount(account: GpuAccount, offset: number): void {
    account.share = this.#readDouble(offset + ACCOUNT_CELL.share);
    account.busy = this.#readDouble(offset + ACCOUNT_CELL.busy);
    account.idle = this.#readDouble(offset + ACCOUNT_CELL.idle);
    account.unrecorded = this.#readDouble(offset + ACCOUNT_CELL.unrecorded);
  }

  #write(state: GpuTimeState, offset: number): void {
    Atomics.store(this.#cells, offset + CELL.inflight, state.inflight);
    Atomics.store(this.#cells, offset + CELL.gpuCount, state.gpuCount);
    Atomics.store(this.#cells, offset + CELL.own, state.own);
    this.#writeDouble(offset + CELL.hourPrice, state.hourPrice);
    this.#writeDouble(offset + CELL.atMs, state.atMs);
    this.#writeAccount(state.time, offset + CELL.time);
    this.#writeAccount(state.cost, offset + CELL.cost);
  }

  #writeAccount(account: GpuAccount, offset: number): void {
    this.#writeDouble(offset + ACCOUNT_CELL.share, account.share);
    this.#writeDouble(offset + ACCOUNT_CELL.busy, account.busy);
    this.#writeDouble(offset + ACCOUNT_CELL.idle, account.idle);
    this.#writeDouble(offset + ACCOUNT_CELL.unrecorded, account.unrecorded);
    this.#writeDouble(offset + ACCOUNT_CELL.own, account.own);
  }

  #readDouble(index: number): number {
    this.#halves[0] = Atomics.load(this.#cells, index);
    this.#halves[1] = Atomics.load(this.#cells, index + 1);
    return this.#double[0] ?? 0;
  }

  #writeDouble(index: number, value: number): void {
    this.#double[0] = value;
    Atomics.store(this.#cells, index, this.#halves[0] ?? 0);
    Atomics.store(this.#cells, index + 1, this.#halves[1] ?? 0);
  }
}

const NO_LEASE: LeaseBegin = { time: 0, cost: 0 };

function hasPrice(hourPrice: number): boolean {
  return !Number.isNaN(hourPrice);
}

function toSums({ busy, idle, unrecorded }: GpuAccount): GpuSums {
  return { busy, idle, unrecorded };
}
