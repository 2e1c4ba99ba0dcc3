/** Requests after which all counts are halved: what was popular long ago weighs little. */
const HALVED_AFTER = 1024;
/** A prefix seen more rarely than this is not popular, however few replicas there are. */
const MIN_COUNT = 8;

/**
 * Which prefixes of one model are so popular that every replica has them anyway. Such a prefix, the system prompt of
 * an application for example, tells nothing about where to send a request: what follows it does.
 *
 * Only shares count, and each thread counts for itself. Threads and gateways among which requests are spread find
 * about the same shares, and so the same answers, without telling each other anything.
 */
export class PrefixPopularity {
  /** Weighted requests by the 32 bits of a prefix's hash; about twice `HALVED_AFTER` of them at most. */
  readonly #counts = new Map<number, number>();
  #requests = 0;
  #untilHalved = HALVED_AFTER;

  /**
   * Counts one request, and finds the prefix to send it by: its first that is not popular, which is the one that less
   * than half of a replica's share of the requests begin with. Null if it has none.
   *
   * @param hashes one a block, each of all text up to the block's end; 8 hex digits or more
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
