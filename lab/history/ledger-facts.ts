import { LEDGER, RECORD_FIELDS } from '#otel/record/registry';
import type { SpanValues } from '#records/files';

/** What a ledger span says of the records that it covers. */
export interface LedgerFacts {
  readonly instance: string;
  /** The numbers that were queued. */
  readonly committed: readonly number[];
  readonly tokens: number;
}

/** Reads a ledger span. */
export function toLedgerFacts(values: SpanValues): LedgerFacts {
  const ranges = [LEDGER.dropped, LEDGER.lost, LEDGER.unencodable].flatMap((name) => values.texts(name));
  const absent = new Set(
    ranges.flatMap((text) => {
      const [first = 0, last = first] = text.split('-').map(Number);
      return seqsOf(first, last);
    }),
  );
  const seqs = seqsOf(values.count(LEDGER.firstSeq) ?? 0, values.count(LEDGER.lastSeq) ?? 0);
  return {
    instance: values.text(RECORD_FIELDS.instance.name) ?? '',
    committed: seqs.filter((seq) => !absent.has(seq)),
    tokens: (values.count(LEDGER.promptTokens) ?? 0) + (values.count(LEDGER.completionTokens) ?? 0),
  };
}

function seqsOf(first: number, last: number): readonly number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}
