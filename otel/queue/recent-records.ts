import { decodeRecord } from '../encode/decode-record.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { LineStore } from './line-store.ts';

/** How much is kept: lines, and their bytes together. */
export interface RecentRecordsBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/**
 * The last records for people to look at, whatever became of their export. Kept as the bytes they are queued as,
 * which costs a request next to nothing, and decoded for whoever asks.
 */
export class RecentRecords {
  readonly #bounds: RecentRecordsBounds;
  /** Stamped with their numbers. */
  readonly #lines = new LineStore();
  #lastNumber = 0;

  constructor(bounds: RecentRecordsBounds) {
    this.#bounds = bounds;
  }

  /** The number of the newest record: the first one is 1; 0 means that there is none yet. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Keeps a copy of a record's line, and gives up the oldest beyond the bounds. */
  add(line: Uint8Array): void {
    this.#lastNumber += 1;
    this.#lines.append(line, this.#lastNumber);
    const { capacity, capacityBytes } = this.#bounds;
    while (this.#lines.size > capacity || this.#lines.bytes > capacityBytes) this.#lines.removeFirst();
  }

  /** At most `limit` records, newest first; with `after` only those whose number is greater. */
  latest(limit: number, after = 0): readonly RequestRecord[] {
    const newest = this.#lines.peek(this.#lines.size).filter(({ stamp }) => stamp > after);
    return newest
      .slice(Math.max(0, newest.length - limit))
      .reverse()
      .flatMap(({ line }) => decodeRecord(line) ?? []);
  }
}
