import { decodeRecord } from '#otel/otlp';
import { hasFailed, toOutcome } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { EncodedSpanStore, type StoredSpan } from './encoded-span-store.ts';
import type { EndedRecord } from './record-consumer.ts';

/** How many records are kept, and how many bytes of encoded spans. */
export interface RingBounds {
  readonly capacity: number;
  readonly capacityBytes: number;
}

/** What is kept: the records of the latest requests, and of the latest failures of each kind. */
export interface RecentRecordsBounds {
  readonly latest: RingBounds;
  /** For errors, and the same again for client errors. */
  readonly failures: RingBounds;
}

/** Which records to read. */
export interface RecordQuery {
  readonly limit: number;
  /** Only records with a greater number. */
  readonly after?: number | undefined;
  /** Only records that it returns true for. */
  readonly matches?: ((record: RequestRecord) => boolean) | undefined;
}

/**
 * The latest records, and those of the latest failures, for the admin API and the dashboard, whether or not they were
 * exported. Errors and client errors have a ring each: a client that asks for a wrong model again and again hides no
 * error. Records are kept as encoded spans, which costs a request next to nothing, and decoded when they are read. How
 * a request ended is seen in its record when it passes.
 */
export class RecentRecords {
  readonly #latest: SpanRing;
  readonly #errors: SpanRing;
  readonly #clientErrors: SpanRing;
  #lastNumber = 0;

  constructor({ latest, failures }: RecentRecordsBounds) {
    this.#latest = new SpanRing(latest);
    this.#errors = new SpanRing(failures);
    this.#clientErrors = new SpanRing(failures);
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
    const outcome = toOutcome(record);
    if (outcome === 'error') this.#errors.add(encodedSpan, this.#lastNumber);
    else if (outcome === 'client_error') this.#clientErrors.add(encodedSpan, this.#lastNumber);
  }

  /** The latest records, newest first. */
  latest(query: RecordQuery): readonly RequestRecord[] {
    return decodeNewest(this.#latest.after(query.after), query);
  }

  /**
   * At most `limit` of the latest records, and of those of the latest failures of each kind, newest first. A failure
   * among the latest records is decoded once.
   */
  latestAndFailures(query: Omit<RecordQuery, 'matches'>): {
    readonly latest: readonly RequestRecord[];
    readonly failures: readonly RequestRecord[];
  } {
    const decoded = new Map<number, RequestRecord | null>();
    const decode = ({ tag, encodedSpan }: StoredSpan) => {
      const record = decoded.get(tag);
      if (record !== undefined) return record;
      const read = decodeRecord(encodedSpan);
      decoded.set(tag, read);
      return read;
    };
    return {
      latest: decodeNewest(this.#latest.after(query.after), query, decode),
      failures: decodeNewest(this.#failuresAfter(query.after), query, decode),
    };
  }

  /** The records of all failed requests that are kept, newest first: the failures, and those among the latest. */
  failed(query: RecordQuery): readonly RequestRecord[] {
    const { after, matches = () => true } = query;
    const failures = this.#failuresAfter(after);
    const known = new Set(failures.map(({ tag }) => tag));
    // From there on, the failures are complete.
    const first = Math.max(this.#errors.firstComplete, this.#clientErrors.firstComplete);
    const older = this.#latest.after(after).filter(({ tag }) => tag < first && !known.has(tag));
    return decodeNewest(inOrder([...older, ...failures]), {
      ...query,
      matches: (record) => hasFailed(record) && matches(record),
    });
  }

  #failuresAfter(number: number | undefined): readonly StoredSpan[] {
    return inOrder([...this.#errors.after(number), ...this.#clientErrors.after(number)]);
  }
}

function inOrder(spans: readonly StoredSpan[]): readonly StoredSpan[] {
  return spans.toSorted((a, b) => a.tag - b.tag);
}

/** The latest encoded spans within bounds. The tag of each is the number of its record. */
class SpanRing {
  readonly #bounds: RingBounds;
  readonly #spans = new EncodedSpanStore();
  #hasRemoved = false;

  constructor(bounds: RingBounds) {
    this.#bounds = bounds;
  }

  /** The number from which on no span was removed. */
  get firstComplete(): number {
    return this.#hasRemoved ? (this.#spans.peek(1)[0]?.tag ?? Number.POSITIVE_INFINITY) : 0;
  }

  add(encodedSpan: Uint8Array, number: number): void {
    this.#spans.append(encodedSpan, number);
    const { capacity, capacityBytes } = this.#bounds;
    while (this.#spans.size > capacity || this.#spans.bytes > capacityBytes) {
      this.#spans.removeFirst();
      this.#hasRemoved = true;
    }
  }

  /** Those with a greater number, oldest first. */
  after(number = 0): readonly StoredSpan[] {
    return this.#spans.peek(this.#spans.size).filter(({ tag }) => tag > number);
  }
}

/** Decodes from the newest on, until there are enough. */
function decodeNewest(
  spans: readonly StoredSpan[],
  { limit, matches }: RecordQuery,
  decode = ({ encodedSpan }: StoredSpan) => decodeRecord(encodedSpan),
): readonly RequestRecord[] {
  const records: RequestRecord[] = [];
  for (const span of spans.toReversed()) {
    if (records.length >= limit) break;
    const record = decode(span);
    if (record !== null && (matches === undefined || matches(record))) records.push(record);
  }
  return records;
}
