/**
 * The most bytes of spans in one export. A Collector takes bodies of 20 MiB by default (confighttp,
 * `max_request_body_size`), proxies in front of it often less; a batch of 512 usual records is 1 MB.
 */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** A limit that was halved is whole again after 45 batches: seldom enough to probe one that still holds. */
const GROWTH = 1 / 64;

/**
 * What is known of connections that were cut: nothing; that batches shrank because of them, from what limit; that
 * the limit was put back because a smaller batch was taken, and is now tried.
 */
type Suspicion =
  | { readonly state: 'none' }
  | { readonly state: 'shrinking'; readonly fromBytes: number }
  | { readonly state: 'on_trial' };

/**
 * How many bytes one export carries: as many as the collector has shown to take. Halved when a batch was too
 * large, and grown a little with each batch taken, so that one bad hour of the collector is forgotten.
 *
 * Connections that are cut may mean that, or a proxy whose collector is away. So the first batch taken after
 * them puts the limit back at once; only if connections are cut again it was the size.
 */
export class BatchLimit {
  #bytes = MAX_BATCH_BYTES;
  #lowestBytes = MAX_BATCH_BYTES;
  #suspicion: Suspicion = { state: 'none' };

  get bytes(): number {
    return this.#bytes;
  }

  /** The collector said that a batch of these bytes is too large. Answers whether that is news: half of the least ever. */
  shrink(refusedBytes: number): boolean {
    this.#suspicion = { state: 'none' };
    this.#halve(refusedBytes);
    if (this.#bytes > this.#lowestBytes / 2) return false;
    this.#lowestBytes = this.#bytes;
    return true;
  }

  /** Connections were cut while a batch of these bytes was sent: it may be too large. */
  suspect(cutBytes: number): void {
    if (this.#suspicion.state === 'none') this.#suspicion = { state: 'shrinking', fromBytes: this.#bytes };
    this.#halve(cutBytes);
  }

  /** A batch of these bytes was taken. */
  grow(takenBytes: number): void {
    if (this.#suspicion.state === 'shrinking') {
      this.#bytes = this.#suspicion.fromBytes;
      this.#suspicion = { state: 'on_trial' };
      return;
    }
    if (this.#suspicion.state === 'on_trial' && takenBytes > this.#bytes / 2)
      this.#suspicion = { state: 'none' };
    this.#bytes = Math.min(MAX_BATCH_BYTES, Math.ceil(this.#bytes * (1 + GROWTH)));
  }

  #halve(bytes: number): void {
    this.#bytes = Math.max(1, Math.floor(bytes / 2));
  }
}
