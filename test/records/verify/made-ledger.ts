import { NO_PREVIOUS } from '#otel/ledger';
import { AttributesDigester, DIGEST_BYTES, encodeLedgerSpan, toSpanJson } from '#otel/otlp';
import { LEDGER } from '#otel/record/registry';

/** The record with a number, as a span in OTLP JSON, with nothing else in it. */
export function recordOf(instance: string, seq: number): string {
  const attributes = [
    { key: 'gateway.instance', value: { stringValue: instance } },
    { key: 'gateway.seq', value: { intValue: seq } },
  ];
  return JSON.stringify({ attributes });
}

/** What a ledger span declares, besides its instance, its number and the one that it follows. */
export interface MadePage {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** The numbers that are not in it, as ranges. */
  readonly lost?: string;
  readonly rejected?: readonly string[];
  readonly promptTokens?: number;
  readonly isFinal?: boolean;
}

/** The ledger spans of an instance in OTLP JSON, over records as `recordOf` makes them. */
export function ledgerOf(instance: string, pages: readonly MadePage[]): readonly string[] {
  const digester = new AttributesDigester();
  let previous = NO_PREVIOUS;
  return pages.map(({ firstSeq, lastSeq, lost, rejected, promptTokens, isFinal = false }, index) => {
    const [first = 0, last = first] = (lost ?? '').split('-').map(Number);
    const digests: Buffer[] = [];
    for (let seq = firstSeq; seq <= lastSeq; seq++) {
      if (first <= seq && seq <= last) continue;
      const digest = digester.digestJsonSpan(JSON.parse(recordOf(instance, seq)));
      if (digest !== null) digests.push(digest.subarray(0, DIGEST_BYTES));
    }
    const { encodedSpan, chain } = encodeLedgerSpan(
      {
        [LEDGER.instance]: instance,
        [LEDGER.number]: index + 1,
        [LEDGER.firstSeq]: firstSeq,
        [LEDGER.lastSeq]: lastSeq,
        [LEDGER.count]: digests.length,
        [LEDGER.promptTokens]: promptTokens,
        [LEDGER.lost]: lost === undefined ? undefined : [lost],
        [LEDGER.rejected]: rejected === undefined ? undefined : [...rejected],
        [LEDGER.digests]: Buffer.concat(digests).toString('base64'),
        [LEDGER.previous]: previous,
        [LEDGER.final]: isFinal || undefined,
      },
      { startMs: 1, endMs: 2 },
    );
    previous = chain;
    return toSpanJson(encodedSpan) ?? '';
  });
}
