import type { Clock, Log } from '#otel/base';
import { AttributesDigester, decodeRecord } from '#otel/otlp';
import type { RequestRecord } from '#otel/record/registry';
import { LedgerBook, type NotQueued } from './ledger-book.ts';

/** With so many ledger spans that could not be sent, one that would cover no queued record waits. */
const MAX_WAITING = 64;

/** What the queue and the export tell the ledger. */
export interface RecordLedger {
  /** A record was queued. */
  queued(record: Readonly<RequestRecord>, encodedSpan: Uint8Array): void;
  /** A record has a number and was not queued. */
  notQueued(record: Readonly<RequestRecord>, why: NotQueued): void;
  /** Records that were queued were rejected for good. */
  rejected(encodedSpans: readonly Uint8Array[]): void;
  /** An instance has ended before the gateway. `begun`: how many records it has begun in its life, modulo 2^32. */
  instanceEnded(instance: string, begun: number): void;
  /** No more records will come. Idempotent. */
  end(): void;
}

/** Without `export.ledger`. */
export const NO_LEDGER: RecordLedger = {
  queued: () => undefined,
  notQueued: () => undefined,
  rejected: () => undefined,
  instanceEnded: () => undefined,
  end: () => undefined,
};

/** What the ledger works with. */
export interface LedgerCollaborators {
  /** Takes a ledger span for export. */
  readonly publish: (encodedSpan: Uint8Array) => void;
  /** How many ledger spans wait for export. */
  readonly waitingCount: () => number;
  readonly clock: Clock;
  /** Epoch milliseconds. */
  readonly epochMs: () => number;
  readonly log: Log;
}

/**
 * The books of all instances of this gateway. Every interval, and whenever a book is full, a ledger span says what
 * became of the records since the last (docs/ledger.md).
 */
export class Ledger implements RecordLedger {
  readonly #collaborators: LedgerCollaborators;
  readonly #books = new Map<string, LedgerBook>();
  readonly #digester = new AttributesDigester();
  readonly #ended = new AbortController();

  constructor(intervalMs: number, collaborators: LedgerCollaborators) {
    this.#collaborators = collaborators;
    void this.#run(intervalMs);
  }

  queued(record: Readonly<RequestRecord>, encodedSpan: Uint8Array): void {
    const { instance, seq } = record;
    const digest = this.#digester.digestSpan(encodedSpan);
    if (instance === undefined || seq === undefined || digest === null) return;
    const book = this.#bookOf(instance);
    book.queued(seq, record, digest);
    if (book.isFull) this.#publish(book);
  }

  notQueued({ instance, seq }: Readonly<RequestRecord>, why: NotQueued): void {
    if (instance === undefined || seq === undefined) return;
    const book = this.#bookOf(instance);
    book.notQueued(seq, why);
    if (book.isFull) this.#publish(book);
  }

  rejected(encodedSpans: readonly Uint8Array[]): void {
    for (const encodedSpan of encodedSpans) {
      const { instance, seq } = decodeRecord(encodedSpan) ?? {};
      if (instance === undefined || seq === undefined) continue;
      const own = this.#books.get(instance);
      const book = own ?? this.#books.values().next().value;
      if (own !== undefined) own.rejected(seq);
      else book?.rejectedElsewhere(instance, seq);
      if (book?.isFull === true) this.#publish(book);
    }
  }

  instanceEnded(instance: string, begun: number): void {
    if (this.#ended.signal.aborted) return;
    const lastSeq = this.#books.get(instance)?.lastSeq ?? 0;
    const lost = (begun - lastSeq) >>> 0;
    if (lastSeq + lost === 0) return;
    const book = this.#bookOf(instance);
    book.lost(lost);
    this.#close(instance, book);
  }

  end(): void {
    this.#ended.abort();
    for (const [instance, book] of this.#books) this.#close(instance, book);
  }

  async #run(intervalMs: number): Promise<void> {
    const { clock } = this.#collaborators;
    for (;;) {
      await clock.sleep(intervalMs, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
      for (const book of this.#books.values()) if (this.#isDue(book)) this.#publish(book);
    }
  }

  /** While the collector is away and the queue is full, ranges of dropped records grow: they need no ledger spans. */
  #isDue(book: LedgerBook): boolean {
    if (book.isEmpty) return false;
    return book.queuedCount > 0 || this.#collaborators.waitingCount() < MAX_WAITING;
  }

  #bookOf(instance: string): LedgerBook {
    const known = this.#books.get(instance);
    if (known !== undefined) return known;
    const book = new LedgerBook(instance, this.#collaborators.epochMs);
    this.#books.set(instance, book);
    return book;
  }

  #publish(book: LedgerBook): void {
    this.#collaborators.publish(book.toSpan({ isFinal: false }).encodedSpan);
  }

  /** The last chain goes to the log, too: who keeps the log elsewhere can prove that the files were not rewritten. */
  #close(instance: string, book: LedgerBook): void {
    this.#books.delete(instance);
    const { encodedSpan, chain } = book.toSpan({ isFinal: true });
    this.#collaborators.publish(encodedSpan);
    this.#collaborators.log.info({ instance, records: book.lastSeq, chain }, 'ledger closed');
  }
}
