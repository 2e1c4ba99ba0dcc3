import { DIGEST_BYTES, encodeLedgerSpan } from '#otel/otlp';
import { LEDGER, type RequestRecord } from '#otel/record/registry';

/** A ledger span covers at most so many queued records: 16 KiB of digests, 22 KB in base64. */
const MAX_RECORDS = 1024;
/** And has at most about so many ranges of records that were not queued. */
const MAX_RANGES = 256;

/** `previous` of the first ledger span of an instance. */
export const NO_PREVIOUS = '0'.repeat(64);

/** Why a record that has a number was not queued. */
export type NotQueued = 'dropped' | 'unencodable';

/** Numbers as ranges, in the order in which they were added. Successive numbers take no memory. */
class SeqRanges {
  readonly #ranges: { first: number; last: number }[] = [];

  /** How many ranges there are. */
  get count(): number {
    return this.#ranges.length;
  }

  /** Adds the numbers from `first` to `last`. */
  add(first: number, last = first): void {
    if (last < first) return;
    const latest = this.#ranges.at(-1);
    if (latest !== undefined && latest.last + 1 === first) latest.last = last;
    else this.#ranges.push({ first, last });
  }

  /** `5`, `7-9`. */
  toTexts(): readonly string[] {
    return this.#ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
  }
}

/** What one ledger span will say. */
class Page {
  readonly digests = Buffer.allocUnsafeSlow(MAX_RECORDS * DIGEST_BYTES);
  count = 0;
  promptTokens = 0;
  completionTokens = 0;
  cachedTokens = 0;
  readonly ranges = {
    dropped: new SeqRanges(),
    lost: new SeqRanges(),
    unencodable: new SeqRanges(),
    rejected: new SeqRanges(),
  };
  /** Rejected records of instances that have no book: each range with the instance before it. */
  readonly rejectedElsewhere: string[] = [];

  get rangeCount(): number {
    const { dropped, lost, unencodable, rejected } = this.ranges;
    return dropped.count + lost.count + unencodable.count + rejected.count + this.rejectedElsewhere.length;
  }
}

/**
 * The ledger of one instance: what became of each of its numbers, in their order, since its last ledger span. It takes
 * 16 KiB, however many records there are.
 */
export class LedgerBook {
  readonly #instance: string;
  readonly #epochMs: () => number;
  #page = new Page();
  #pageStartMs: number;
  /** The last number that was accounted for, and the last one that a ledger span covers. */
  #lastSeq = 0;
  #coveredSeq = 0;
  #number = 0;
  #chain = NO_PREVIOUS;

  constructor(instance: string, epochMs: () => number) {
    this.#instance = instance;
    this.#epochMs = epochMs;
    this.#pageStartMs = epochMs();
  }

  /** The last number that was accounted for. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** How many records were queued since the last ledger span. */
  get queuedCount(): number {
    return this.#page.count;
  }

  /** Whether there is nothing to say since the last ledger span. */
  get isEmpty(): boolean {
    return this.#lastSeq === this.#coveredSeq && this.#page.rangeCount === 0;
  }

  /** Whether the next ledger span is as large as it may become. */
  get isFull(): boolean {
    return this.#page.count === MAX_RECORDS || this.#page.rangeCount >= MAX_RANGES;
  }

  /** A record was queued. */
  queued(seq: number, record: Readonly<RequestRecord>, digest: Uint8Array): void {
    this.#reach(seq);
    const page = this.#page;
    page.digests.set(digest.subarray(0, DIGEST_BYTES), page.count * DIGEST_BYTES);
    page.count += 1;
    page.promptTokens += record.prompt_tokens ?? 0;
    page.completionTokens += record.completion_tokens ?? 0;
    page.cachedTokens += record.cached_tokens ?? 0;
  }

  /** A record was not queued. */
  notQueued(seq: number, why: NotQueued): void {
    this.#reach(seq);
    this.#page.ranges[why].add(seq);
  }

  /** The next `count` numbers are those of records that are lost. */
  lost(count: number): void {
    this.#page.ranges.lost.add(this.#lastSeq + 1, this.#lastSeq + count);
    this.#lastSeq += count;
  }

  /** A record that was queued was rejected. */
  rejected(seq: number): void {
    this.#page.ranges.rejected.add(seq);
  }

  /** A record of an instance without a book was rejected. */
  rejectedElsewhere(instance: string, seq: number): void {
    this.#page.rejectedElsewhere.push(`${instance}:${seq}`);
  }

  /** Closes the page: returns the ledger span that covers what happened since the last one. */
  toSpan({ isFinal }: { readonly isFinal: boolean }) {
    const page = this.#page;
    const { dropped, lost, unencodable, rejected } = page.ranges;
    const endMs = this.#epochMs();
    this.#number += 1;
    const span = encodeLedgerSpan(
      {
        [LEDGER.instance]: this.#instance,
        [LEDGER.number]: this.#number,
        [LEDGER.firstSeq]: this.#coveredSeq + 1,
        [LEDGER.lastSeq]: this.#lastSeq,
        [LEDGER.count]: page.count,
        [LEDGER.promptTokens]: page.promptTokens,
        [LEDGER.completionTokens]: page.completionTokens,
        [LEDGER.cachedTokens]: page.cachedTokens,
        [LEDGER.dropped]: orAbsent(dropped.toTexts()),
        [LEDGER.lost]: orAbsent(lost.toTexts()),
        [LEDGER.unencodable]: orAbsent(unencodable.toTexts()),
        [LEDGER.rejected]: orAbsent([...rejected.toTexts(), ...page.rejectedElsewhere]),
        [LEDGER.digests]: page.digests.toString('base64', 0, page.count * DIGEST_BYTES),
        [LEDGER.previous]: this.#chain,
        [LEDGER.final]: isFinal || undefined,
      },
      { startMs: Math.min(this.#pageStartMs, endMs), endMs },
    );
    this.#chain = span.chain;
    this.#coveredSeq = this.#lastSeq;
    this.#pageStartMs = endMs;
    this.#page = new Page();
    return span;
  }

  /** A worker that has no place in the queue may not even send the record: numbers that it left out were dropped. */
  #reach(seq: number): void {
    this.#page.ranges.dropped.add(this.#lastSeq + 1, seq - 1);
    this.#lastSeq = seq;
  }
}

function orAbsent(texts: readonly string[]): string[] | undefined {
  return texts.length === 0 ? undefined : [...texts];
}
