import { crc32 } from 'node:zlib';

const LINE_FEED = 0x0a;
const CHECKSUM_CHARS = 8;
const SPACE = Buffer.from(' ');
const END = Buffer.from('\n');

/**
 * Encoded spans as the lines of a spool file: a CRC-32 of the span in 8 hex digits, a space, the span's JSON. A
 * damaged line that still looks like JSON would make a Collector refuse the whole batch it is sent with.
 */
export function toSpoolLines(spans: readonly Uint8Array[]): Buffer {
  return Buffer.concat(spans.flatMap((span) => [Buffer.from(toChecksum(span)), SPACE, span, END]));
}

/** Reads the lines of a spool file: the spans that are what they were, and how many lines are not. */
export function parseSpoolLines(file: Buffer): {
  readonly spans: readonly Uint8Array[];
  readonly brokenCount: number;
} {
  const spans: Uint8Array[] = [];
  let brokenCount = 0;
  for (let start = 0; start < file.length; ) {
    const lineFeed = file.indexOf(LINE_FEED, start);
    const end = lineFeed === -1 ? file.length : lineFeed;
    const span = file.subarray(start + CHECKSUM_CHARS + SPACE.length, end);
    const checksum = file.toString('latin1', start, start + CHECKSUM_CHARS);
    if (span.length > 0 && toChecksum(span) === checksum) spans.push(span);
    else brokenCount += 1;
    start = end + 1;
  }
  return { spans, brokenCount };
}

function toChecksum(span: Uint8Array): string {
  return crc32(span).toString(16).padStart(CHECKSUM_CHARS, '0');
}
