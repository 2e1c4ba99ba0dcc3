/** Requests after which all counts are halved, so that old requests weigh little. */
const HALVED_AFTER = 1024;
/** A prefix seen less often than this is not popular, however few replicas there are. */
const MIN_COUNT = 8;

/**
 * Which prefixes of one model are so popular that every replica has them cached anyway. Such a prefix, for example the
 * system prompt of an application, says nothing about where to send a request; the text after it does.
 *
 * Only shares of requests matter, and each thread counts for itself: threads and gateways that share the same traffic
 * find about the same shares, and so the same keys, without communication.
 */
export class PrefixPopularity {
  /** Weighted requests by 32 bits of a prefix's hash; about twice `HALVED_AFTER` entries at most. */
  readonly #counts = new Map<number, number>();
  #requests = 0;
  #untilHalved = HALVED_AFTER;

  /**
   * Counts a request and returns the key to route it by: its first prefix that is not popular, which less than half of
   * a replica's share of the requests begin with. Null if there is none.
   *
   * @param hashes one for each block, of all text up to the block's end; 8 hex digits or more
   * @returns 32 bits of the prefix's hash
   */
  keyOf(hashes: readonly string[], replicaCount: number): number | null {
    this.#countRequest();
    const popular = Math.max(MIN_COUNT, this.#requests / (2 * replicaCount));
    for (const hash of hashes) {
      const key = Number.parseInt(hash.slice(0, 8), 16);
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#counts.set(key, count);
      if (count <= popular) return key;
    }
    return null;
  }

  #countRequest(): void {
    this.#requests++;
    if (--this.#untilHalved > 0) return;
    this.#untilHalved = HALVED_AFTER;
    this.#requests /= 2;
    for (const [key, count] of this.#counts) {
      if (count < 2) this.#counts.delete(key);
      else this.#counts.set(key, count / 2);
    }
  }
}
