import { decodeRecord } from '../encode/decode-record.ts';
import type { RequestRecord } from '../encode/request-record.ts';
import { EncodedSpanStore } from './encoded-span-store.ts';

/** How many records are kept, and how many bytes of encoded spans. */
export interface RecentRecordsBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/**
 * The latest records, for the admin API and the dashboard, whether or not they were exported. They are kept as encoded
 * spans, which costs a request next to nothing, and decoded when they are read.
 */
export class RecentRecords {
  readonly #bounds: RecentRecordsBounds;
  /** The tag of each span is the number of its record. */
  readonly #spans = new EncodedSpanStore();
  #lastNumber = 0;

  constructor(bounds: RecentRecordsBounds) {
    this.#bounds = bounds;
  }

  /** The number of the newest record. The first record is 1; 0 means that there is none. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Keeps a copy of a record's encoded span, and removes the oldest records beyond the bounds. */
  add(encodedSpan: Uint8Array): void {
    this.#lastNumber += 1;
    this.#spans.append(encodedSpan, this.#lastNumber);
    const { capacity, capacityBytes } = this.#bounds;
    while (this.#spans.size > capacity || this.#spans.bytes > capacityBytes) this.#spans.removeFirst();
  }

  /** At most `limit` records, newest first; only those with a number greater than `after`. */
  latest(limit: number, after = 0): readonly RequestRecord[] {
    const newest = this.#spans.peek(this.#spans.size).filter(({ tag }) => tag > after);
    return newest
      .slice(Math.max(0, newest.length - limit))
      .reverse()
      .flatMap(({ encodedSpan }) => decodeRecord(encodedSpan) ?? []);
  }
}
