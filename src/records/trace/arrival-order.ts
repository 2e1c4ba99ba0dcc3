import type { TracedRequest } from './traced-request.ts';

/** Counts that are updated while requests are read. */
export interface OrderCounts {
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
