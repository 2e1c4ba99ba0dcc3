import { decodeRecords } from '#otel/otlp';
import { readLines } from '#records/files';
import { type CacheSummary, PrefixHits } from './prefix-hits.ts';
import { type BlockSizes, createTraceLines } from './trace-lines.ts';
import { type TracedRequest, toTracedRequest } from './traced-request.ts';

/** A long request may end after this many later ones. Each takes about 100 to 1,200 bytes of memory. */
export const WINDOW = 50_000;

const WRITE_CHARS = 64 * 1024;

/** What a trace is made of. */
export interface TraceSettings {
  readonly filter: RecordFilter;
  readonly sizes: BlockSizes;
  /** Whether prefix caching is summarized. */
  readonly withSummary: boolean;
}

/** How many requests the trace has, and what is missing from it or was changed in it. */
export interface TraceCounts extends ReadCounts, OrderCounts {
  requests: number;
}

/** What is known of a trace when it is written. */
export interface WrittenTrace {
  readonly counts: TraceCounts;
  /** Null: it was not wanted. */
  readonly summary: CacheSummary | null;
}

/**
 * Converts files of records to a trace for replay tools. `write` gets its text, piece by piece; null: only the summary is
 * wanted. Rejects with what a file or `write` rejects with.
 */
export async function writeTrace(
  files: readonly AsyncIterable<Uint8Array>[],
  { filter, sizes, withSummary }: TraceSettings,
  write: ((text: string) => Promise<void>) | null,
): Promise<WrittenTrace> {
  const counts: TraceCounts = { requests: 0, repeated: 0, late: 0, brokenLines: 0, withoutTokens: 0 };
  const hits = withSummary ? new PrefixHits(sizes.blockChars / sizes.charsPerToken) : null;
  const toLine = createTraceLines(sizes);
  const requests = files.map((chunks) => readRequests(chunks, filter, counts));
  let text = '';
  for await (const request of inArrivalOrder(mergeByEnd(requests), WINDOW, counts)) {
    counts.requests += 1;
    hits?.add(request);
    if (write === null) continue;
    text += toLine(request);
    if (text.length < WRITE_CHARS) continue;
    await write(text);
    text = '';
  }
  await write?.(text);
  return { counts, summary: hits?.summarize() ?? null };
}

/** Selects the records of one model, of one replica, or both. */
interface RecordFilter {
  readonly model?: string | undefined;
  readonly replica?: string | undefined;
}

/** Counts that are updated while records are read. */
interface ReadCounts {
  /** Lines that are truncated, or are not exported spans. */
  brokenLines: number;
  /** Records without what a replay needs: generated text and its token counts. */
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

/** Counts that are updated while requests are read. */
interface OrderCounts {
  /** Repeated records: delivery is at least once. */
  repeated: number;
  /** Requests that were moved, because later ones had already been returned. */
  late: number;
}

/**
 * Sorts requests by arrival. Records are written when requests end, so a long request follows many that began later: at
 * least `window` requests are held back for it. A request that is further out of order gets the time of the request
 * before it. Repeated records are omitted if they come within the window.
 */
export async function* inArrivalOrder(
  requests: AsyncIterable<TracedRequest>,
  window: number,
  counts: OrderCounts,
): AsyncGenerator<TracedRequest> {
  const ids = new Set<string>();
  let held: TracedRequest[] = [];
  let lastAtMs = Number.NEGATIVE_INFINITY;

  function* release(count: number): Generator<TracedRequest> {
    held.sort((a, b) => a.atMs - b.atMs);
    for (const request of held.slice(0, count)) {
      ids.delete(request.id);
      const isLate = request.atMs < lastAtMs;
      if (isLate) counts.late += 1;
      else lastAtMs = request.atMs;
      yield isLate ? { ...request, atMs: lastAtMs } : request;
    }
    held = held.slice(count);
  }

  for await (const request of requests) {
    if (ids.has(request.id)) {
      counts.repeated += 1;
      continue;
    }
    ids.add(request.id);
    held.push(request);
    // Sorts once per window, not once per request: between one and two windows are held.
    if (held.length >= 2 * window) yield* release(window);
  }
  yield* release(held.length);
}

/**
 * Merges files of records that overlap in time, such as those of several gateways, by the end of the requests. Each file
 * is almost in that order.
 */
export async function* mergeByEnd(
  files: readonly AsyncIterable<TracedRequest>[],
): AsyncGenerator<TracedRequest> {
  const readers = files.map((file) => file[Symbol.asyncIterator]());
  try {
    const heads = await Promise.all(readers.map((reader) => reader.next()));
    for (;;) {
      const first = findFirst(heads);
      const head = heads[first];
      const reader = readers[first];
      if (head === undefined || reader === undefined || head.done === true) return;
      yield head.value;
      heads[first] = await reader.next();
    }
  } finally {
    await Promise.all(readers.map((reader) => reader.return?.()));
  }
}

/** Returns the index of the head that ended first; -1 if all files are exhausted. */
function findFirst(heads: readonly IteratorResult<TracedRequest>[]): number {
  let first = -1;
  let firstMs = Number.POSITIVE_INFINITY;
  for (const [index, head] of heads.entries()) {
    if (head.done === true) continue;
    // A damaged record may never end.
    if (first !== -1 && head.value.endedAtMs >= firstMs) continue;
    first = index;
    firstMs = head.value.endedAtMs;
  }
  return first;
}
