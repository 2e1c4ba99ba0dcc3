import { decodeRecords } from '#otel/encode/decode-record.ts';
import { type TracedRequest, toTracedRequest } from './traced-request.ts';

/** Selects the records of one model, of one replica, or both. */
export interface RecordFilter {
  readonly model?: string | undefined;
  readonly replica?: string | undefined;
}

/** Counts that are updated while records are read. */
export interface ReadCounts {
  /** Lines that are truncated, or are not exported spans. */
  brokenLines: number;
  /** Records without the token counts that a replay needs. */
  withoutTokens: number;
}

const LINE_FEED = 0x0a;

/** A line is one export of a collector, of at most some MB. A file without line feeds must not fill the memory. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Reads the requests from the bytes of a file of records, in the order of the file: lines of OTLP JSON, as written by
 * `export.to: file` and by a Collector's file exporter. Unusable lines and records are counted and skipped.
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
 * Splits bytes at line feeds. Empty lines are skipped; a line that is too long is null. node:readline would also split
 * at U+2028, which JSON may contain unescaped.
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
