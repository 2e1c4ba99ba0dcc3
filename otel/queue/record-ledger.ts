/** How many records may wait for the collector, and how many bytes their encoded spans are together at most. */
export interface QueueBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/** The memory itself, as it can be handed to another thread. */
export interface LedgerMemory {
  readonly buffer: SharedArrayBuffer;
  readonly workerCount: number;
  readonly bounds: QueueBounds;
}

/** What workers have counted since they were last asked, as counts of records. */
export interface Refused {
  readonly dropped: number;
  readonly unencodable: number;
}

/** The words of one row. */
const WORD = { open: 0, places: 1, placeUnits: 2, sent: 3, unqueued: 4, dropped: 5, unencodable: 6 } as const;
/** 64 bytes: rows share no cache line. */
const ROW_WORDS = 16;
/** The first row is that of the queue itself, those of the workers follow. */
const QUEUE_ROW = 0;

/**
 * A bound in bytes may be more than a word can hold: bytes are counted in units, of one byte each up to a bound of
 * 1 GiB. A record is rounded up.
 */
const MAX_UNITS = 2 ** 30;

/** How many records of one worker, beyond those with a place, may be on their way to whoever only looks at them. */
const MAX_UNQUEUED = 4096;

/** Reserves the memory: a row for each worker in a thread of its own, none if there are no such threads. */
export function allocateLedger(workerCount: number, bounds: QueueBounds): LedgerMemory {
  const words = ROW_WORDS * (workerCount + 1);
  return { buffer: new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT), workerCount, bounds };
}

/**
 * What all threads know of the records between the beginning of a request and the collector: the places of the
 * queue, which are bounded in total, and what each worker has begun, so that of one that dies every record is
 * accounted for. Every word is read and written with Atomics; nobody ever waits.
 *
 * A place is taken in the row of the worker, and moves into that of the queue when the record arrives there.
 */
export class RecordLedger {
  readonly memory: LedgerMemory;
  readonly #words: Int32Array;
  readonly #rowCount: number;
  readonly #unitBytes: number;
  readonly #capacityUnits: number;

  constructor(memory: LedgerMemory) {
    const { buffer, workerCount, bounds } = memory;
    this.memory = memory;
    this.#words = new Int32Array(buffer);
    this.#rowCount = workerCount + 1;
    this.#unitBytes = Math.max(1, Math.ceil(bounds.capacityBytes / MAX_UNITS));
    this.#capacityUnits = Math.floor(bounds.capacityBytes / this.#unitBytes);
  }

  /** How full the queue is, by number or by weight, whichever is more: from 0 to 1. */
  get fill(): number {
    const { capacity } = this.memory.bounds;
    return Math.max(this.#sum(WORD.places) / capacity, this.#sum(WORD.placeUnits) / this.#capacityUnits);
  }

  /** A request has begun in a worker, that will be a record. */
  begin(worker: number): void {
    this.#add(rowOf(worker), WORD.open, 1);
  }

  /** It has ended, or was none. */
  end(worker: number): void {
    this.#add(rowOf(worker), WORD.open, -1);
  }

  /** Takes a place for a record of a worker; answers false, and takes none, if the queue is full. */
  takePlace(worker: number, bytes: number): boolean {
    const row = rowOf(worker);
    if (!this.#take(row, bytes)) return false;
    this.#add(row, WORD.sent, 1);
    return true;
  }

  /** Takes a place for a record that is in the queue's own thread. */
  takeQueuePlace(bytes: number): boolean {
    return this.#take(QUEUE_ROW, bytes);
  }

  /** A record that has a place has come from a worker. */
  arrive(worker: number, bytes: number): void {
    // Never too few for a moment: whoever asks in between must not get a place that is taken.
    this.#move(QUEUE_ROW, bytes, 1);
    this.#move(rowOf(worker), bytes, -1);
    this.#add(rowOf(worker), WORD.sent, -1);
  }

  /** A record has left the queue. */
  leave(bytes: number): void {
    this.#move(QUEUE_ROW, bytes, -1);
  }

  /** Records on their way from workers to the queue. */
  inTransit(): number {
    return this.#sum(WORD.sent);
  }

  countDropped(worker: number): void {
    this.#add(rowOf(worker), WORD.dropped, 1);
  }

  countUnencodable(worker: number): void {
    this.#add(rowOf(worker), WORD.unencodable, 1);
  }

  /** Takes over what the workers have counted: each count is told once. */
  takeCounts(): Refused {
    let dropped = 0;
    let unencodable = 0;
    for (let row = QUEUE_ROW + 1; row < this.#rowCount; row++) {
      dropped += this.#takeAll(row, WORD.dropped);
      unencodable += this.#takeAll(row, WORD.unencodable);
    }
    return { dropped, unencodable };
  }

  /** Whether a record without a place may be sent on its way all the same, for whoever looks at all records. */
  takeUnqueued(worker: number): boolean {
    const row = rowOf(worker);
    if (this.#add(row, WORD.unqueued, 1) < MAX_UNQUEUED) return true;
    this.#add(row, WORD.unqueued, -1);
    return false;
  }

  /** So many records without a place have come from a worker. */
  arriveUnqueued(worker: number, count: number): void {
    this.#add(rowOf(worker), WORD.unqueued, -count);
  }

  /**
   * A worker has ended, and nothing of it will arrive any more: its places are given back. Returns how many records
   * are lost with it: requests that had begun, and what was on its way.
   */
  clear(worker: number): number {
    const row = rowOf(worker);
    const lost = this.#takeAll(row, WORD.open) + this.#takeAll(row, WORD.sent);
    for (const word of [WORD.places, WORD.placeUnits, WORD.unqueued]) this.#takeAll(row, word);
    return lost;
  }

  /** Taken first and looked at afterwards: of two threads at the brim at most one gets the last place. */
  #take(row: number, bytes: number): boolean {
    this.#move(row, bytes, 1);
    const isWithin =
      this.#sum(WORD.places) <= this.memory.bounds.capacity &&
      this.#sum(WORD.placeUnits) <= this.#capacityUnits;
    if (!isWithin) this.#move(row, bytes, -1);
    return isWithin;
  }

  #move(row: number, bytes: number, count: 1 | -1): void {
    this.#add(row, WORD.places, count);
    this.#add(row, WORD.placeUnits, count * Math.ceil(bytes / this.#unitBytes));
  }

  #sum(word: number): number {
    let sum = 0;
    for (let row = 0; row < this.#rowCount; row++) sum += this.#load(row, word);
    return sum;
  }

  #load(row: number, word: number): number {
    return Atomics.load(this.#words, row * ROW_WORDS + word);
  }

  /** Returns what it was before. */
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
