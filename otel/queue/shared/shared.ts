/*
 * What the threads share of the queue: how many records and bytes each has reserved, sent, dropped and lost, in shared
 * memory.
 *
 * It never knows a record.
 */

/** How many records the queue holds at most, and how many bytes of encoded spans. */
export interface QueueBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/** The shared memory, which can be passed to another thread. */
export interface SharedQueueMemory {
  readonly buffer: SharedArrayBuffer;
  readonly workerCount: number;
  readonly bounds: QueueBounds;
}

/** Records that workers counted but did not queue. */
interface UnqueuedCounts {
  readonly dropped: number;
  readonly unencodable: number;
}

/** What became of a worker's records, in records. */
interface EndedWorker {
  /** How many the worker has begun in its life, modulo 2^32. */
  readonly begun: number;
  /** Those of them that neither arrived nor were counted as dropped or unencodable. */
  readonly lost: number;
}

/**
 * The words of one row. A worker may die between any two of its writes: so the worker alone writes `begun` and the
 * queue's thread alone writes `accounted`, and what is lost is their difference. (With a word that the worker took back
 * at the end of a request, one that died between two writes was lost twice.)
 */
const WORD = {
  begun: 0,
  accounted: 1,
  reserved: 2,
  reservedUnits: 3,
  inTransit: 4,
  unqueued: 5,
  dropped: 6,
  unencodable: 7,
} as const;
/** 64 bytes: rows share no cache line. */
const ROW_WORDS = 16;
/** The first row is the queue's own; the rows of the workers follow. */
const QUEUE_ROW = 0;

/**
 * A bound in bytes may be larger than a word can hold, so bytes are counted in units. A unit is one byte for bounds up
 * to 1 GiB. Each record is rounded up.
 */
const MAX_UNITS = 2 ** 30;

/** How many records without a reservation one worker may have in transit, for the observers of records. */
const MAX_UNQUEUED = 4096;

/** Allocates the memory: one row for the queue, and one for each worker that runs in its own thread. */
export function allocateSharedQueue(workerCount: number, bounds: QueueBounds): SharedQueueMemory {
  const words = ROW_WORDS * (workerCount + 1);
  return { buffer: new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT), workerCount, bounds };
}

/**
 * What all threads share about the queue: the capacity that is reserved, which is bounded in total, and the requests
 * that each worker has begun, so that every record of a worker that dies is accounted for. All words are read and
 * written with Atomics; no thread ever waits.
 *
 * A worker reserves capacity in its own row. The reservation moves to the queue's row when the record arrives there.
 */
export class SharedQueueState {
  readonly memory: SharedQueueMemory;
  readonly #words: Int32Array;
  readonly #rowCount: number;
  readonly #unitBytes: number;
  readonly #capacityUnits: number;

  constructor(memory: SharedQueueMemory) {
    const { buffer, workerCount, bounds } = memory;
    this.memory = memory;
    this.#words = new Int32Array(buffer);
    this.#rowCount = workerCount + 1;
    this.#unitBytes = Math.max(1, Math.ceil(bounds.capacityBytes / MAX_UNITS));
    this.#capacityUnits = Math.floor(bounds.capacityBytes / this.#unitBytes);
  }

  /** How full the queue is, from 0 to 1: by records or by bytes, whichever is more. */
  get fill(): number {
    const { capacity } = this.memory.bounds;
    return Math.max(this.#sum(WORD.reserved) / capacity, this.#sum(WORD.reservedUnits) / this.#capacityUnits);
  }

  /** A request that will leave a record has begun in a worker. */
  begin(worker: number): void {
    this.#add(rowOf(worker), WORD.begun, 1);
  }

  /** A request that has begun in a worker leaves no record after all. */
  discard(worker: number): void {
    this.#add(rowOf(worker), WORD.begun, -1);
  }

  /** Reserves capacity for a record that a worker is about to send. False, without a reservation, if the queue is full. */
  reserve(worker: number, bytes: number): boolean {
    const row = rowOf(worker);
    if (!this.#reserve(row, bytes)) return false;
    this.#add(row, WORD.inTransit, 1);
    return true;
  }

  /** Reserves capacity for a record of the queue's own thread. False, without a reservation, if the queue is full. */
  reserveInQueue(bytes: number): boolean {
    return this.#reserve(QUEUE_ROW, bytes);
  }

  /** A record with a reservation has arrived from a worker: the reservation moves to the queue. */
  moveToQueue(worker: number, bytes: number): void {
    // In this order the sum is never too low, so that no other thread reserves capacity that is in use.
    this.#change(QUEUE_ROW, bytes, 1);
    this.#change(rowOf(worker), bytes, -1);
    this.#add(rowOf(worker), WORD.inTransit, -1);
    this.#add(rowOf(worker), WORD.accounted, 1);
  }

  /** A record has left the queue. */
  release(bytes: number): void {
    this.#change(QUEUE_ROW, bytes, -1);
  }

  /** How many records are in transit from workers to the queue. */
  inTransit(): number {
    return this.#sum(WORD.inTransit);
  }

  countDropped(worker: number): void {
    this.#add(rowOf(worker), WORD.dropped, 1);
  }

  countUnencodable(worker: number): void {
    this.#add(rowOf(worker), WORD.unencodable, 1);
  }

  /** Returns what workers have counted since the last call. */
  takeUnqueuedCounts(): UnqueuedCounts {
    let dropped = 0;
    let unencodable = 0;
    for (let row = QUEUE_ROW + 1; row < this.#rowCount; row++) {
      const droppedHere = this.#takeAll(row, WORD.dropped);
      const unencodableHere = this.#takeAll(row, WORD.unencodable);
      this.#add(row, WORD.accounted, droppedHere + unencodableHere);
      dropped += droppedHere;
      unencodable += unencodableHere;
    }
    return { dropped, unencodable };
  }

  /** Whether a worker may send a record without a reservation, for the observers of records alone. */
  beginUnqueued(worker: number): boolean {
    const row = rowOf(worker);
    if (this.#add(row, WORD.unqueued, 1) < MAX_UNQUEUED) return true;
    this.#add(row, WORD.unqueued, -1);
    return false;
  }

  /** A record without a reservation has arrived from a worker. */
  endUnqueued(worker: number): void {
    this.#add(rowOf(worker), WORD.unqueued, -1);
  }

  /**
   * A worker has ended, no more of its records will arrive, and its unqueued counts were taken: its reservations are
   * released. Returns what became of its records.
   */
  clearWorker(worker: number): EndedWorker {
    const row = rowOf(worker);
    const begun = this.#takeAll(row, WORD.begun) >>> 0;
    const lost = (begun - this.#takeAll(row, WORD.accounted)) >>> 0;
    for (const word of [WORD.inTransit, WORD.reserved, WORD.reservedUnits, WORD.unqueued]) {
      this.#takeAll(row, word);
    }
    return { begun, lost };
  }

  /** Reserves first and checks afterwards: of two threads that reach the bound, at most one gets the last reservation. */
  #reserve(row: number, bytes: number): boolean {
    this.#change(row, bytes, 1);
    const isWithin =
      this.#sum(WORD.reserved) <= this.memory.bounds.capacity &&
      this.#sum(WORD.reservedUnits) <= this.#capacityUnits;
    if (!isWithin) this.#change(row, bytes, -1);
    return isWithin;
  }

  #change(row: number, bytes: number, count: 1 | -1): void {
    this.#add(row, WORD.reserved, count);
    this.#add(row, WORD.reservedUnits, count * Math.ceil(bytes / this.#unitBytes));
  }

  /** The queue's row is read last: a reservation that moves there meanwhile is counted twice, but never left out. */
  #sum(word: number): number {
    let sum = 0;
    for (let row = this.#rowCount - 1; row >= QUEUE_ROW; row--) sum += this.#load(row, word);
    return sum;
  }

  #load(row: number, word: number): number {
    return Atomics.load(this.#words, row * ROW_WORDS + word);
  }

  /** Returns the value before the change. */
  #add(row: number, word: number, change: number): number {
    return Atomics.add(this.#words, row * ROW_WORDS + word, change);
  }

  #takeAll(row: number, word: number): number {
    return Atomics.exchange(this.#words, row * ROW_WORDS + word, 0);
  }
}

function rowOf(worker: number): number {
  return worker + 1;
}
