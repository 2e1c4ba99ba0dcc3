import { decodeRecord } from './decode-record.ts';
import type { RequestRecord } from './request-record.ts';

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
  /** Oldest first. */
  readonly #lines: Uint8Array[] = [];
  #bytes = 0;
  #lastNumber = 0;

  constructor(bounds: RecentRecordsBounds) {
    this.#bounds = bounds;
  }

  /** The number of the newest record: the first one is 1; 0 means that there is none yet. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Keeps the line of a record, as the queue has it, and gives up the oldest beyond the bounds. */
  add(line: Uint8Array): void {
    this.#lines.push(line);
    this.#bytes += line.length;
    this.#lastNumber += 1;
    while (this.#lines.length > this.#bounds.capacity || this.#bytes > this.#bounds.capacityBytes) {
      this.#bytes -= this.#lines.shift()?.length ?? 0;
    }
  }

  /** At most `limit` records, newest first; with `after` only those whose number is greater. */
  latest(limit: number, after = 0): readonly RequestRecord[] {
    const count = Math.min(limit, this.#lines.length, Math.max(0, this.#lastNumber - after));
    return this.#lines
      .slice(this.#lines.length - count)
      .reverse()
      .flatMap((line) => decodeRecord(line) ?? []);
  }
}
