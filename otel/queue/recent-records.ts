import { decodeShownRecord, type ShownRecord } from '../encode/decode-record.ts';
import { hasFailed } from '../encode/request-outcome.ts';
import { EncodedSpanStore, type StoredSpan } from './encoded-span-store.ts';
import type { EndedRecord } from './record-consumer.ts';

/** How many records are kept, and how many bytes of encoded spans. */
export interface RingBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/** What is kept: the records of the latest requests, and of the latest failed ones, whatever came after them. */
export interface RecentRecordsBounds {
  readonly latest: RingBounds;
  readonly failed: RingBounds;
}

/** Which records to read. */
export interface RecordQuery {
  readonly limit: number;
  /** Only records with a greater number. */
  readonly after?: number | undefined;
  /** Only records that it returns true for. */
  readonly matches?: ((record: ShownRecord) => boolean) | undefined;
}

/**
 * The latest records, and the latest of failed requests, for the admin API and the dashboard, whether or not they were
 * exported. They are kept as encoded spans, which costs a request next to nothing, and decoded when they are read.
 * Whether a request failed is seen in its record when it passes.
 */
export class RecentRecords {
  readonly #latest: SpanRing;
  readonly #failed: SpanRing;
  #lastNumber = 0;

  constructor({ latest, failed }: RecentRecordsBounds) {
    this.#latest = new SpanRing(latest);
    this.#failed = new SpanRing(failed);
  }

  /** The number of the newest record. The first record is 1; 0 means that there is none. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** Keeps a copy of a record's encoded span. A record that could not be encoded is not kept. */
  add({ record, encodedSpan }: EndedRecord): void {
    if (encodedSpan === null) return;
    this.#lastNumber += 1;
    this.#latest.add(encodedSpan, this.#lastNumber);
    if (hasFailed(record)) this.#failed.add(encodedSpan, this.#lastNumber);
  }

  /** The latest records, newest first. */
  latest(query: RecordQuery): readonly ShownRecord[] {
    return decodeNewest(this.#latest.after(query.after), query);
  }

  /** The latest records of failed requests, newest first: those kept for it, and those among the latest records. */
  failed(query: RecordQuery): readonly ShownRecord[] {
    const { after, matches = () => true } = query;
    const failed = this.#failed.after(after);
    const oldest = failed[0]?.tag ?? 0;
    // Between the oldest failed record and now, the latest records have no other failed ones.
    const older = this.#latest.after(after).filter(({ tag }) => tag < oldest);
    return decodeNewest([...older, ...failed], {
      ...query,
      matches: (record) => hasFailed(record) && matches(record),
    });
  }
}

/** The latest encoded spans within bounds. The tag of each is the number of its record. */
class SpanRing {
  readonly #bounds: RingBounds;
  readonly #spans = new EncodedSpanStore();

  constructor(bounds: RingBounds) {
    this.#bounds = bounds;
  }

  add(encodedSpan: Uint8Array, number: number): void {
    this.#spans.append(encodedSpan, number);
    const { capacity, capacityBytes } = this.#bounds;
    while (this.#spans.size > capacity || this.#spans.bytes > capacityBytes) this.#spans.removeFirst();
  }

  /** Those with a greater number, oldest first. */
  after(number = 0): readonly StoredSpan[] {
    return this.#spans.peek(this.#spans.size).filter(({ tag }) => tag > number);
  }
}

/** Decodes from the newest on, until there are enough. */
function decodeNewest(spans: readonly StoredSpan[], { limit, matches }: RecordQuery): readonly ShownRecord[] {
  const records: ShownRecord[] = [];
  for (let index = spans.length - 1; index >= 0 && records.length < limit; index--) {
    const encodedSpan = spans[index]?.encodedSpan;
    const record = encodedSpan === undefined ? null : decodeShownRecord(encodedSpan);
    if (record !== null && (matches === undefined || matches(record))) records.push(record);
  }
  return records;
}
