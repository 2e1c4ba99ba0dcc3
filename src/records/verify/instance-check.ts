import { NO_PREVIOUS } from '#otel/ledger';
import { DIGEST_BYTES } from '#otel/otlp';
import type {
  Declared,
  ExportedLedger,
  ExportedRecord,
  LedgerEntry,
  SeqRange,
  TokenSums,
} from './exported-span.ts';
import { type Finding, toFinding } from './finding.ts';
import { type PageAllowance, SEQ, SeqPages } from './seq-pages.ts';

type DeclaredRange = SeqRange & { readonly why: Declared };

/** The verdict on one instance. */
export interface InstanceVerdict {
  readonly instance: string;
  /**
   * `complete`: every record is there once, as the gateway made it, to the end of the instance. `open`: so far, but the
   * instance has not ended, or the files are a part. `uncommitted`: there is no ledger span.
   */
  readonly state: 'complete' | 'open' | 'uncommitted' | 'incomplete';
  /** Different records. */
  readonly records: number;
  readonly tokens: TokenSums;
  readonly ledgerSpans: number;
  /** The last number that ledger spans cover; 0 if there is none. */
  readonly committedTo: number;
  readonly isFinal: boolean;
  /** The chain of the last ledger span; null if there is none. */
  readonly chain: string | null;
  readonly finding: Finding;
}

/** Collects the records and ledger spans of one instance, in any order. */
export class InstanceCheck {
  readonly #instance: string;
  readonly #pages: SeqPages;
  readonly #ledgers = new Map<number, LedgerEntry>();
  /** Numbers of ledger spans that were changed, or differ from another with the same number. */
  readonly #changedLedgers = new Set<number>();
  readonly #declared: DeclaredRange[] = [];
  #records = 0;
  #tokens = { prompt: 0, completion: 0, cached: 0 };

  constructor(instance: string, allowance: PageAllowance) {
    this.#instance = instance;
    this.#pages = new SeqPages(allowance);
  }

  /** How many different records there are. */
  get records(): number {
    return this.#records;
  }

  /** The ledger spans that were not changed, in their order. */
  get ledgers(): readonly LedgerEntry[] {
    return [...this.#ledgers.values()].sort((a, b) => a.number - b.number);
  }

  addRecord({ seq, digest, tokens }: ExportedRecord): void {
    if (!this.#pages.see(seq, digest)) return;
    this.#records += 1;
    this.#tokens.prompt += tokens.prompt;
    this.#tokens.completion += tokens.completion;
    this.#tokens.cached += tokens.cached;
  }

  /** A ledger span that was sent twice is harmless. */
  addLedger({ digests, ...ledger }: ExportedLedger): void {
    const known = this.#ledgers.get(ledger.number);
    if (known?.chain === ledger.chain && ledger.isIntact) return;
    const seqs = ledger.isIntact ? committedSeqs(ledger, digests.length / DIGEST_BYTES) : null;
    if (seqs === null || known !== undefined) {
      this.#changedLedgers.add(ledger.number);
      return;
    }
    this.#ledgers.set(ledger.number, ledger);
    let at = 0;
    for (const { first, last } of seqs) {
      for (let seq = first; seq <= last; seq++, at += DIGEST_BYTES) {
        this.#pages.commit(seq, digests.subarray(at, at + DIGEST_BYTES));
      }
    }
    for (const why of ['dropped', 'lost', 'unencodable'] as const)
      this.#declared.push(...ledger[why].map((range) => ({ ...range, why })));
  }

  /** A ledger span, perhaps of another instance, says that these were rejected. */
  addRejected({ first, last }: SeqRange): void {
    this.#declared.push({ first, last, why: 'rejected' });
  }

  /** `isPart`: the files are a part of what was recorded, so that it may begin and end anywhere. */
  verdict({ isPart }: { readonly isPart: boolean }): InstanceVerdict {
    const ledgers = this.ledgers;
    const last = ledgers.at(-1);
    const firstNumber = isPart ? (ledgers[0]?.number ?? 1) : 1;
    const firstSeq = isPart ? (ledgers[0]?.firstSeq ?? this.#firstSeen()) : 1;
    const committedTo = last?.lastSeq ?? 0;
    const { lastSeen } = this.#pages;
    const finding = toFinding({
      runs: this.#pages.runs(firstSeq, Math.max(committedTo, lastSeen)),
      covered: ledgers,
      committedTo,
      hasEnded: last?.isFinal === true,
      declared: this.#declared,
    });
    finding.missingLedgers.push(...missingNumbers(ledgers, firstNumber));
    finding.brokenChain.push(...brokenLinks(ledgers));
    finding.changedLedgers.push(...[...this.#changedLedgers].sort((a, b) => a - b));
    const isFinal = last?.isFinal === true && committedTo >= lastSeen;
    if (!isPart && finding.isClean && isFinal) finding.sumsDiffer = !this.#hasSumsOf(ledgers);
    return {
      instance: this.#instance,
      records: this.#records,
      tokens: { ...this.#tokens },
      state: finding.isClean ? this.#stateOf(ledgers, isFinal) : 'incomplete',
      ledgerSpans: ledgers.length,
      committedTo,
      isFinal,
      chain: last?.chain ?? null,
      finding,
    };
  }

  #stateOf(ledgers: readonly LedgerEntry[], isFinal: boolean): InstanceVerdict['state'] {
    const [first] = ledgers;
    if (first === undefined) return 'uncommitted';
    return isFinal && first.number === 1 ? 'complete' : 'open';
  }

  #firstSeen(): number {
    for (const { first, flags } of this.#pages.runs(1, this.#pages.lastSeen)) {
      if ((flags & SEQ.seen) !== 0) return first;
    }
    return 1;
  }

  #hasSumsOf(ledgers: readonly LedgerEntry[]): boolean {
    const expected = sumTokens(ledgers);
    const { prompt, completion, cached } = this.#tokens;
    return expected.prompt === prompt && expected.completion === completion && expected.cached === cached;
  }
}

/** The sums that ledger spans declare. */
export function sumTokens(ledgers: readonly LedgerEntry[]): TokenSums & { readonly count: number } {
  const sums = { count: 0, prompt: 0, completion: 0, cached: 0 };
  for (const { count, tokens } of ledgers) {
    sums.count += count;
    sums.prompt += tokens.prompt;
    sums.completion += tokens.completion;
    sums.cached += tokens.cached;
  }
  return sums;
}

/** The numbers that have a digest, as ranges, some of which may be empty; null if they are not as many as the digests. */
function committedSeqs(
  { firstSeq, lastSeq, count, dropped, lost, unencodable, number }: LedgerEntry,
  digestCount: number,
): readonly SeqRange[] | null {
  const absent = [...dropped, ...lost, ...unencodable].sort((a, b) => a.first - b.first);
  const seqs: SeqRange[] = [];
  let next = firstSeq;
  let total = 0;
  const add = (last: number) => {
    seqs.push({ first: next, last });
    total += last - next + 1;
  };
  for (const { first, last } of absent) {
    if (first < next || last > lastSeq) return null;
    add(first - 1);
    next = last + 1;
  }
  add(lastSeq);
  return total === digestCount && total === count && firstSeq > 0 && number > 0 ? seqs : null;
}

function missingNumbers(ledgers: readonly LedgerEntry[], from: number): readonly SeqRange[] {
  const missing: SeqRange[] = [];
  let next = from;
  for (const { number } of ledgers) {
    if (number > next) missing.push({ first: next, last: number - 1 });
    next = number + 1;
  }
  return missing;
}

/** The numbers of ledger spans that do not follow the one before. */
function brokenLinks(ledgers: readonly LedgerEntry[]): readonly number[] {
  return ledgers
    .filter((ledger, index) => {
      const before = ledgers[index - 1];
      if (ledger.number === 1) return ledger.previous !== NO_PREVIOUS || ledger.firstSeq !== 1;
      if (before === undefined || before.number + 1 !== ledger.number) return false;
      return ledger.previous !== before.chain || ledger.firstSeq !== before.lastSeq + 1 || before.isFinal;
    })
    .map(({ number }) => number);
}
