/**
 * The most bytes of spans in one export. A Collector takes bodies of 20 MiB by default (confighttp,
 * `max_request_body_size`), proxies in front of it often less; a batch of 512 usual records is 1 MB.
 */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** A limit that was halved is whole again after 45 batches: seldom enough to probe one that still holds. */
const GROWTH = 1 / 64;

/**
 * How many bytes one export carries: as many as the collector has shown to take. Halved when a batch was too
 * large, and grown a little with each batch taken, so that one bad hour of the collector is forgotten.
 */
export class BatchLimit {
  #bytes = MAX_BATCH_BYTES;
  #lowestBytes = MAX_BATCH_BYTES;

  get bytes(): number {
    return this.#bytes;
  }

  /** A batch of these bytes was too large. Answers whether that is news: half as much as was ever answered. */
  shrink(refusedBytes: number): boolean {
    this.#bytes = Math.max(1, Math.floor(refusedBytes / 2));
    if (this.#bytes > this.#lowestBytes / 2) return false;
    this.#lowestBytes = this.#bytes;
    return true;
  }

  /** A batch was taken. */
  grow(): void {
    this.#bytes = Math.min(MAX_BATCH_BYTES, Math.ceil(this.#bytes * (1 + GROWTH)));
  }
}
