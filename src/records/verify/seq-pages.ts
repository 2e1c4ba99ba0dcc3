import { DIGEST_BYTES } from '#otel/otlp';

/** How many numbers one page holds. */
const PAGE_SEQS = 1024;
/** 67 million records, for which 1.4 GB of memory are needed. With a number in each page they need 0.1 GB. */
const MAX_PAGES = 65_536;
/** How many numbers one block of a page holds. Blocks are made when they are needed: numbers may be far apart. */
const BLOCK_SEQS = 64;

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

/** The flags of its numbers, then their digests. */
type SeqBlock = Buffer;
type SeqPage = (SeqBlock | undefined)[];

/**
 * What is known of each number of an instance: 17 bytes for each, in blocks of pages. It makes no difference whether a record or
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
    const block = this.#blockOf(seq);
    const place = seq % BLOCK_SEQS;
    const before = block[place] ?? 0;
    const isFirst = (before & SEQ.seen) === 0;
    const slot = slotOf(block, place);
    let after = before | SEQ.seen | (isFirst ? 0 : SEQ.doubled);
    if (digest === null) after |= SEQ.changed;
    else if (isFirst && (before & SEQ.committed) === 0) slot.set(digest.subarray(0, DIGEST_BYTES));
    else if (!slot.equals(digest.subarray(0, DIGEST_BYTES))) after |= SEQ.changed;
    block[place] = after;
    this.#lastSeen = Math.max(this.#lastSeen, seq);
    return isFirst;
  }

  /** A ledger span has the digest of a record. */
  commit(seq: number, digest: Uint8Array): void {
    const block = this.#blockOf(seq);
    const place = seq % BLOCK_SEQS;
    const before = block[place] ?? 0;
    const slot = slotOf(block, place);
    const isOther = (before & (SEQ.seen | SEQ.committed)) !== 0 && !slot.equals(digest);
    block[place] = before | SEQ.committed | (isOther ? SEQ.changed : 0);
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
      const block = page?.[blockIndexOf(seq)];
      const flags = block?.[seq % BLOCK_SEQS] ?? 0;
      // Where there is no page, nothing is known up to the next one; where there is no block, up to its end.
      const pageEnd = (starts[nextStart] ?? Number.POSITIVE_INFINITY) - 1;
      const blockEnd = seq - (seq % BLOCK_SEQS) + BLOCK_SEQS - 1;
      const unknownEnd = page === undefined ? pageEnd : blockEnd;
      const end = block === undefined ? Math.min(last, unknownEnd) : seq;
      if (flags === run.flags) run.last = end;
      else {
        if (run.last >= run.first) yield run;
        run = { first: seq, last: end, flags };
      }
      seq = end + 1;
    }
    if (run.last >= run.first) yield run;
  }

  #blockOf(seq: number): SeqBlock {
    const page = this.#pageOf(seq);
    const index = blockIndexOf(seq);
    const known = page[index];
    if (known !== undefined) return known;
    const block = Buffer.alloc(BLOCK_SEQS * (1 + DIGEST_BYTES));
    page[index] = block;
    return block;
  }

  #pageOf(seq: number): SeqPage {
    const index = Math.floor(seq / PAGE_SEQS);
    const known = this.#pages.get(index);
    if (known !== undefined) return known;
    if (this.#allowance.left-- <= 0) throw new TooManyRecordsError();
    const page: SeqPage = [];
    this.#pages.set(index, page);
    return page;
  }
}

function blockIndexOf(seq: number): number {
  return Math.floor((seq % PAGE_SEQS) / BLOCK_SEQS);
}

function slotOf(block: SeqBlock, place: number): Buffer {
  const start = BLOCK_SEQS + place * DIGEST_BYTES;
  return block.subarray(start, start + DIGEST_BYTES);
}
