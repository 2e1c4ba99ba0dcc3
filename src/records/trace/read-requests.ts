import { decodeRecords } from '#otel/otlp';
import { readLines } from '#records/files';
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
