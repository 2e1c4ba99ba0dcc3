import type { RecordLedger } from './record-ledger.ts';

/** A record on its way to the collector: its encoded span, and when it came by the loop's clock. */
export interface QueuedRecord {
  readonly line: Uint8Array;
  readonly queuedAtMs: number;
}

/**
 * The records that wait for the collector: a ring, first in, first out. Records are read from the head and keep
 * their places in the ledger until they are removed, so that what is being sent still counts. A full queue refuses
 * the newcomer.
 */
export class RecordQueue {
  readonly #ledger: RecordLedger;
  readonly #capacity: number;
  readonly #ring: (QueuedRecord | undefined)[];
  #head = 0;
  #size = 0;
  #bytes = 0;

  constructor(ledger: RecordLedger) {
    this.#ledger = ledger;
    this.#capacity = ledger.memory.bounds.capacity;
    this.#ring = new Array<QueuedRecord | undefined>(this.#capacity);
  }

  /** How many records are in it; those on their way from workers have places, too. */
  get size(): number {
    return this.#size;
  }

  /** What their lines are together, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How full it is, by number or by weight, whichever is more: from 0 to 1. What is on its way counts. */
  get fill(): number {
    return this.#ledger.fill;
  }

  /** Appends a record of this thread, or answers false if there is no place for it. */
  offer(record: QueuedRecord): boolean {
    if (!this.#ledger.takeQueuePlace(record.line.length)) return false;
    this.#append(record);
    return true;
  }

  /** Appends a record that has come from a worker, which has taken its place. */
  admit(worker: number, record: QueuedRecord): void {
    this.#ledger.arrive(worker, record.line.length);
    this.#append(record);
  }

  /** Puts records before all others, in their order: the first ones, as many as there is room for. Tells how many. */
  prepend(records: readonly QueuedRecord[]): number {
    const refused = records.findIndex(({ line }) => !this.#ledger.takeQueuePlace(line.length));
    const admitted = refused === -1 ? records : records.slice(0, refused);
    for (const record of admitted.toReversed()) {
      this.#head = (this.#head - 1 + this.#capacity) % this.#capacity;
      this.#put(this.#head, record);
    }
    return admitted.length;
  }

  /**
   * The oldest records, oldest first: at most `count`, and no more than weigh `maxBytes`, but one at least if there
   * is any. They stay in the queue.
   */
  peek(count: number, maxBytes = Number.POSITIVE_INFINITY): QueuedRecord[] {
    const records: QueuedRecord[] = [];
    let bytes = 0;
    for (let offset = 0; offset < Math.min(count, this.#size); offset += 1) {
      const record = this.#ring[(this.#head + offset) % this.#capacity];
      if (record === undefined) break;
      bytes += record.line.length;
      if (bytes > maxBytes && records.length > 0) break;
      records.push(record);
    }
    return records;
  }

  /** Gives up the places of the oldest records, at most `count`. */
  remove(count: number): void {
    const removed = Math.min(count, this.#size);
    for (let offset = 0; offset < removed; offset += 1) {
      const place = (this.#head + offset) % this.#capacity;
      const bytes = this.#ring[place]?.line.length ?? 0;
      this.#ring[place] = undefined;
      this.#bytes -= bytes;
      this.#ledger.leave(bytes);
    }
    this.#head = (this.#head + removed) % this.#capacity;
    this.#size -= removed;
  }

  #append(record: QueuedRecord): void {
    this.#put((this.#head + this.#size) % this.#capacity, record);
  }

  #put(place: number, record: QueuedRecord): void {
    this.#ring[place] = record;
    this.#size += 1;
    this.#bytes += record.line.length;
  }
}
