/**
 * The most bytes of encoded spans in one export. A Collector accepts bodies of 20 MiB by default (confighttp,
 * `max_request_body_size`), proxies in front of it often less. A batch of 512 typical records is 0.7 MB. As JSON, spans
 * are twice as large.
 */
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/** A limit that was halved is restored after 45 batches: a limit that still holds is tested rarely. */
const GROWTH = 1 / 64;

/**
 * Whether cut connections may mean that batches are too large. `none`: nothing is known. `shrinking`: batches shrank
 * after cut connections, from a limit of `fromBytes`. `on_trial`: a smaller batch was accepted, the limit was restored,
 * and is being tested.
 */
type Suspicion =
  | { readonly state: 'none' }
  | { readonly state: 'shrinking'; readonly fromBytes: number }
  | { readonly state: 'on_trial' };

/**
 * How many bytes one export carries: as many as the collector has proved to accept. The limit is halved when a batch was
 * too large, and grows a little with each accepted batch, so that a bad hour of the collector is forgotten.
 *
 * A cut connection can mean a batch that is too large, or a proxy whose collector is away. So the first batch accepted
 * afterwards restores the limit at once. The size was the cause only if connections are cut again.
 */
export class BatchLimit {
  #bytes = MAX_BATCH_BYTES;
  #lowestBytes = MAX_BATCH_BYTES;
  #suspicion: Suspicion = { state: 'none' };

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The collector said that a batch is too large. Returns whether this is worth a log line: the lowest limit ever was
   * halved.
   */
  shrink(batchBytes: number): boolean {
    this.#suspicion = { state: 'none' };
    this.#halve(batchBytes);
    if (this.#bytes > this.#lowestBytes / 2) return false;
    this.#lowestBytes = this.#bytes;
    return true;
  }

  /** Connections were cut while a batch was being sent: it may be too large. */
  suspect(batchBytes: number): void {
    if (this.#suspicion.state === 'none') this.#suspicion = { state: 'shrinking', fromBytes: this.#bytes };
    this.#halve(batchBytes);
  }

  /** A batch was accepted. */
  grow(batchBytes: number): void {
    if (this.#suspicion.state === 'shrinking') {
      this.#bytes = this.#suspicion.fromBytes;
      this.#suspicion = { state: 'on_trial' };
      return;
    }
    if (batchBytes > this.#bytes / 2) this.#suspicion = { state: 'none' };
    this.#bytes = Math.min(MAX_BATCH_BYTES, Math.ceil(this.#bytes * (1 + GROWTH)));
  }

  #halve(bytes: number): void {
    this.#bytes = Math.max(1, Math.floor(bytes / 2));
  }
}
