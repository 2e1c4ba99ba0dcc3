import { DIGEST_BYTES } from '#otel/ledger/canonical-attributes.ts';

/** How many numbers one page holds. */
const PAGE_SEQS = 1024;
/** 67 million records, for which 1.2 GB of memory are needed. */
const MAX_PAGES = 65_536;

/** What is known of a number. */
export const SEQ = {
  /** There is a record. */
  seen: 1,
  /** There are several. */
  doubled: 2,
  /** One of them is not what the ledger says, or they differ. */
  changed: 4,
  /** A ledger span has its digest. */
  committed: 8,
} as const;

/** More records than one run can verify. */
export class TooManyRecordsError extends Error {
  override readonly name = 'TooManyRecordsError';
}

/** How many pages all instances together may still take. */
export interface PageAllowance {
  left: number;
}

/** The allowance of one run. */
export function createPageAllowance(): PageAllowance {
  return { left: MAX_PAGES };
}

/** Successive numbers of which the same is known. */
export interface SeqRun {
  readonly first: number;
  readonly last: number;
  readonly flags: number;
}

interface SeqPage {
  readonly digests: Buffer;
  readonly flags: Uint8Array;
}

/**
 * What is known of each number of an instance: 17 bytes for each, in pages. It makes no difference whether a record or
 * its ledger span comes first.
 */
export class SeqPages {
  readonly #pages = new Map<number, SeqPage>();
  readonly #allowance: PageAllowance;
  #lastSeen = 0;

  constructor(allowance: PageAllowance) {
    this.#allowance = allowance;
  }

  /** The largest number of which there is a record; 0 if there is none. */
  get lastSeen(): number {
    return this.#lastSeen;
  }

  /** There is a record. `digest`: null if it cannot be the gateway's. Returns whether it is the first. */
  see(seq: number, digest: Uint8Array | null): boolean {
    const { digests, flags } = this.#pageOf(seq);
    const place = seq % PAGE_SEQS;
    const before = flags[place] ?? 0;
    const isFirst = (before & SEQ.seen) === 0;
    const slot = digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES);
    let after = before | SEQ.seen | (isFirst ? 0 : SEQ.doubled);
    if (digest === null) after |= SEQ.changed;
    else if (isFirst && (before & SEQ.committed) === 0) slot.set(digest.subarray(0, DIGEST_BYTES));
    else if (!slot.equals(digest.subarray(0, DIGEST_BYTES))) after |= SEQ.changed;
    flags[place] = after;
    this.#lastSeen = Math.max(this.#lastSeen, seq);
    return isFirst;
  }

  /** A ledger span has the digest of a record. */
  commit(seq: number, digest: Uint8Array): void {
    const { digests, flags } = this.#pageOf(seq);
    const place = seq % PAGE_SEQS;
    const before = flags[place] ?? 0;
    const slot = digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES);
    const isOther = (before & (SEQ.seen | SEQ.committed)) !== 0 && !slot.equals(digest);
    flags[place] = before | SEQ.committed | (isOther ? SEQ.changed : 0);
    slot.set(digest);
  }

  /** The flags of the numbers from `first` to `last`, as runs of numbers with the same flags. */
  *runs(first: number, last: number): Generator<SeqRun> {
    const starts = [...this.#pages.keys()].map((index) => index * PAGE_SEQS).sort((a, b) => a - b);
    let nextStart = 0;
    let run = { first, last: first - 1, flags: 0 };
    for (let seq = first; seq <= last; ) {
      while ((starts[nextStart] ?? Number.POSITIVE_INFINITY) <= seq) nextStart += 1;
      const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
      const flags = page?.flags[seq % PAGE_SEQS] ?? 0;
      // Where there is no page, nothing is known up to the next one.
      const unknownEnd = (starts[nextStart] ?? Number.POSITIVE_INFINITY) - 1;
      const end = page === undefined ? Math.min(last, unknownEnd) : seq;
      if (flags === run.flags) run.last = end;
      else {
        if (run.last >= run.first) yield run;
        run = { first: seq, last: end, flags };
      }
      seq = end + 1;
    }
    if (run.last >= run.first) yield run;
  }

  #pageOf(seq: number): SeqPage {
    const index = Math.floor(seq / PAGE_SEQS);
    const known = this.#pages.get(index);
    if (known !== undefined) return known;
    if (this.#allowance.left-- <= 0) throw new TooManyRecordsError();
    const page = {
      digests: Buffer.alloc(PAGE_SEQS * DIGEST_BYTES),
      flags: new Uint8Array(PAGE_SEQS),
    };
    this.#pages.set(index, page);
    return page;
  }
}
