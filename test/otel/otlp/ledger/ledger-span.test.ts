import { expect, test } from 'vitest';
import { encodeLedgerSpan, toSpanJson } from '#otel/otlp';
import { LEDGER } from '#otel/record/registry';

test('a ledger span is whole however long it is', () => {
  // Wherever in its last field the memory ends that it begins with, and the one that it grows to.
  for (const end of [64 * 1024, 128 * 1024]) {
    for (let length = end - 300; length <= end; length++) {
      const digests = 'x'.repeat(length);
      const { encodedSpan } = encodeLedgerSpan({ [LEDGER.digests]: digests }, { startMs: 1, endMs: 2 });
      const span = JSON.parse(toSpanJson(encodedSpan) ?? '');
      expect([span.flags, span.attributes[0].value.stringValue.length]).toEqual([0x101, length]);
    }
  }
});
