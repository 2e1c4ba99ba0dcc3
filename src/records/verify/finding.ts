import type { Declared, LedgerEntry, SeqRange } from './exported-span.ts';
import { SEQ, type SeqRun } from './seq-pages.ts';

/** Ranges beyond these are counted and not kept. */
const MAX_RANGES = 10_000;

/** Numbers as ranges, with their count. */
export class RangeList {
  readonly ranges: { first: number; last: number }[] = [];
  #count = 0;
  #hasMore = false;

  /** How many numbers there are. */
  get count(): number {
    return this.#count;
  }

  /** Whether there are more ranges than are kept. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** Adds numbers that are larger than all before. */
  add(first: number, last: number): void {
    this.#count += last - first + 1;
    const latest = this.ranges.at(-1);
    if (latest !== undefined && latest.last + 1 === first) latest.last = last;
    else if (this.ranges.length < MAX_RANGES) this.ranges.push({ first, last });
    else this.#hasMore = true;
  }
}

/** What is wrong with the records of one instance. */
export class Finding {
  /** No record, and no word of the gateway about it. */
  readonly missing = new RangeList();
  /** No record, but the gateway has declared why. */
  readonly declared: Readonly<Record<Declared, RangeList>> = {
    dropped: new RangeList(),
    lost: new RangeList(),
    unencodable: new RangeList(),
    rejected: new RangeList(),
  };
  /** There are several records with this number. */
  readonly doubled = new RangeList();
  /** The record is not what the ledger says. */
  readonly changed = new RangeList();
  /** There is a record that the gateway has declared dropped, lost or unencodable, or one after the last. */
  readonly unexpected = new RangeList();
  /** Records after the last ledger span. */
  readonly notCommitted = new RangeList();
  /** Records whose ledger span is missing or was changed: that they are unchanged cannot be proven. */
  readonly unproven = new RangeList();
  readonly missingLedgers: SeqRange[] = [];
  readonly changedLedgers: number[] = [];
  readonly brokenChain: number[] = [];
  /** The ledger's sums are not those of its records. */
  sumsDiffer = false;

  /** Whether nothing is wrong. Records that are not committed yet are not wrong. */
  get isClean(): boolean {
    const lists = [
      this.missing,
      ...Object.values(this.declared),
      this.doubled,
      this.changed,
      this.unexpected,
    ];
    return (
      [...lists, this.unproven].every(({ count }) => count === 0) &&
      [this.missingLedgers, this.changedLedgers, this.brokenChain].every(({ length }) => length === 0) &&
      !this.sumsDiffer
    );
  }
}

interface FindingInput {
  /** What is known of each number, in order. */
  readonly runs: Iterable<SeqRun>;
  /** The ledger spans, in order. */
  readonly covered: readonly LedgerEntry[];
  readonly committedTo: number;
  /** Whether the last ledger span says that no record follows. */
  readonly hasEnded: boolean;
  readonly declared: readonly (SeqRange & { readonly why: Declared })[];
}

/** Compares what is there with what the ledger spans say. */
export function toFinding({ runs, covered, committedTo, hasEnded, declared }: FindingInput): Finding {
  const finding = new Finding();
  const isCoveredAt = createLookup(
    covered.map(({ firstSeq, lastSeq }) => ({ first: firstSeq, last: lastSeq })),
  );
  const declaredAt = createLookup(declared.toSorted((a, b) => a.first - b.first));
  const hasLedger = covered.length > 0;

  for (const run of runs) {
    const isSeen = (run.flags & SEQ.seen) !== 0;
    if ((run.flags & SEQ.doubled) !== 0) finding.doubled.add(run.first, run.last);
    if ((run.flags & SEQ.changed) !== 0 && isSeen) finding.changed.add(run.first, run.last);
    if (!isSeen) {
      for (const { first, last, found } of declaredAt.split(run)) {
        if (found === null) finding.missing.add(first, last);
        else finding.declared[found.why].add(first, last);
      }
    } else if ((run.flags & SEQ.committed) === 0 && hasLedger) {
      for (const { first, last, found } of isCoveredAt.split(run)) {
        if (found !== null || (first > committedTo && hasEnded)) finding.unexpected.add(first, last);
        else if (first > committedTo) finding.notCommitted.add(first, last);
        else finding.unproven.add(first, last);
      }
    }
  }
  return finding;
}

/** Finds the range that a number is in; numbers must be asked for in ascending order. */
function createLookup<Range extends SeqRange>(ranges: readonly Range[]) {
  let index = 0;
  return {
    /** Splits a run into pieces, each with the range that it is in, or null. */
    *split({ first, last }: SeqRange): Generator<SeqRange & { readonly found: Range | null }> {
      for (let seq = first; seq <= last; ) {
        let range = ranges[index];
        while (range !== undefined && range.last < seq) range = ranges[++index];
        if (range === undefined || range.first > last) {
          yield { first: seq, last, found: null };
          return;
        }
        const isIn = range.first <= seq;
        const end = isIn ? Math.min(last, range.last) : range.first - 1;
        yield { first: seq, last: end, found: isIn ? range : null };
        seq = end + 1;
      }
    },
  };
}
