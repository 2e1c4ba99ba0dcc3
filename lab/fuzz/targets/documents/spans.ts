import { crc32 } from 'node:zlib';
import { generateInstance, toLine } from '../../../../test/verify-ledger/generated-records.ts';
import type { Random } from '../../../fuzz-http/random.ts';

const RECORD_COUNT = 6;
const generated = generateInstance(
  'a',
  Array.from({ length: RECORD_COUNT }, () => 'queued' as const),
);

/** The spans of an instance of which `gateway verify` proves every record, in OTLP JSON. */
export const PROVEN_SPANS: readonly string[] = [
  ...generated.records.map(({ json }) => json),
  ...generated.ledgers,
];

/** A file of records that is proven: a line for each of one or more spans. */
export function provenFile(random: Random): string {
  const spans = [...PROVEN_SPANS];
  const lines: string[] = [];
  while (spans.length > 0) lines.push(toLine(spans.splice(0, 1 + random.below(4))));
  return lines.join('');
}

/** A file of a spool, with some lines that are none. */
export function spoolLines(random: Random): Buffer {
  const lines = Array.from({ length: random.below(5) }, () => {
    const span = Buffer.from(random.text('abc\0é\n', 60));
    const checksum = random.chance(90) ? crc32(span) : random.below(1000);
    return `${checksum.toString(16).padStart(8, '0')} ${span.toString('base64')}\n`;
  });
  return Buffer.from(lines.join(''));
}
