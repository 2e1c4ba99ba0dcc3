/** Requests after which all counts are halved, so that old requests weigh little. */
const HALVED_AFTER = 1024;
/** A prefix seen less often than this is not popular, however few replicas there are. */
const MIN_COUNT = 8;

/** The prefix by which a request is routed. */
export interface PrefixMatch {
  /** 32 bits of its hash. */
  readonly key: number;
  /** How many blocks of the text it has. */
  readonly blocks: number;
  /** Which part of the latest requests for the model begins with it, this one included: up to 1. */
  readonly share: number;
  /** The seed of the replica that the last request with it went to; null: there was none lately. */
  readonly lastSeed: number | null;
}

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
  /** The seed of the replica that each prefix was sent to last. */
  readonly #lastSeeds = new Map<number, number>();
  #requests = 0;
  #untilHalved = HALVED_AFTER;

  /**
   * Counts a request and returns the prefix to route it by: its first one that is not popular, which less than half of
   * a replica's share of the requests begin with. Null if there is none.
   *
   * @param hashes one for each block, of all text up to the block's end; 8 hex digits or more
   */
  match(hashes: readonly string[], replicaCount: number): PrefixMatch | null {
    this.#countRequest();
    const popular = Math.max(MIN_COUNT, this.#requests / (2 * replicaCount));
    let blocks = 0;
    for (const hash of hashes) {
      const key = Number.parseInt(hash.slice(0, 8), 16);
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#counts.set(key, count);
      blocks++;
      if (count > popular) continue;
      const share = Math.min(1, count / this.#requests);
      return { key, blocks, share, lastSeed: this.#lastSeeds.get(key) ?? null };
    }
    return null;
  }

  /** Notes that a request with this prefix goes to the replica with this seed. */
  noteSent({ key }: PrefixMatch, seed: number): void {
    // What is counted no longer is forgotten.
    if (this.#counts.has(key)) this.#lastSeeds.set(key, seed);
  }

  #countRequest(): void {
    this.#requests++;
    if (--this.#untilHalved > 0) return;
    this.#untilHalved = HALVED_AFTER;
    this.#requests /= 2;
    for (const [key, count] of this.#counts) {
      if (count >= 2) this.#counts.set(key, count / 2);
      else {
        this.#counts.delete(key);
        this.#lastSeeds.delete(key);
      }
    }
  }
}
