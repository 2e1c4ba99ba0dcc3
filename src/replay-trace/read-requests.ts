import { decodeRecords } from '#otel/encode/decode-record.ts';
import { type TracedRequest, toTracedRequest } from './traced-request.ts';

/** Which records are asked for: those of one model, of one replica. */
export interface RecordFilter {
  readonly model?: string | undefined;
  readonly replica?: string | undefined;
}

/** What was read, counted while it happens. */
export interface ReadCounts {
  /** Lines that are no exported spans, or were cut. */
  brokenLines: number;
  /** Records without the token counts that a replay needs. */
  withoutTokens: number;
}

const LINE_FEED = 0x0a;

/** A line is one export of a collector: some MB at most. A file without line ends must not fill the memory. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * The requests in the bytes of a file of records, in its order: lines of OTLP JSON, as `export.to: file` and a
 * Collector's file exporter write them. What cannot be used is counted and passed over.
 */
export async function* readRequests(
  chunks: AsyncIterable<Uint8Array>,
  filter: RecordFilter,
  counts: ReadCounts,
): AsyncGenerator<TracedRequest> {
  for await (const line of readLines(chunks)) {
    const records = line === null ? null : decodeRecords(line);
    if (records === null) counts.brokenLines += 1;
    for (const record of records ?? []) {
      if (filter.model !== undefined && record.model !== filter.model) continue;
      if (filter.replica !== undefined && record.replica !== filter.replica) continue;
      const request = toTracedRequest(record);
      if (request === null) counts.withoutTokens += 1;
      else yield request;
    }
  }
}

/**
 * Splits bytes at line feeds; empty lines are left out, and one that is too long is null. Not node:readline, which
 * ends lines at U+2028 too: JSON may hold it as it is.
 */
async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  const add = (piece: Uint8Array) => {
    length += piece.length;
    if (length <= MAX_LINE_BYTES) pieces.push(piece);
    else pieces = [];
  };
  const take = (): Buffer | null => {
    const line = length <= MAX_LINE_BYTES ? Buffer.concat(pieces) : null;
    pieces = [];
    length = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      if (length > 0) yield take();
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield take();
}
