import { HashTable } from './hash-table.ts';
import { countHashes, type TracedRequest } from './traced-request.ts';

/**
 * How much of the input came from a cache, and how much could have: shares of the input tokens, from 0 to 1. The two
 * possible shares assume a cache that never evicts and is filled at once, and count whole blocks of the prefix hashes.
 * The blocks of engines are smaller, so that they may hit up to one such block more per request.
 */
export interface CacheShares {
  readonly requests: number;
  readonly input_tokens: number;
  /** What the engines report, over the requests with such a report; null if there is none. */
  readonly measured: number | null;
  /** With one cache per replica, and the requests as they were routed. */
  readonly possible_as_routed: number;
  /** With one cache that all replicas share. */
  readonly possible_shared: number;
}

/** The shares of each replica, ordered by name, and of all together. */
export interface CacheSummary {
  readonly replicas: readonly (CacheShares & { readonly replica: string })[];
  readonly all: CacheShares;
  /** Characters per token, over the requests with both figures; null if there is none. */
  readonly chars_per_token: number | null;
  /** Requests without prefix hashes, because they are shorter than a block or consist of token ids. No hits. */
  readonly requests_without_hashes: number;
}

/** Sums over requests, in tokens. */
interface Sums {
  requests: number;
  input: number;
  cached: number;
  /** Input of the requests whose cached tokens are known. */
  inputMeasured: number;
  asRouted: number;
  shared: number;
}

const NO_SUMS: Sums = { requests: 0, input: 0, cached: 0, inputMeasured: 0, asRouted: 0, shared: 0 };

/** Simulates the caches. Requests must be added in the order of their arrival. */
export class PrefixHits {
  readonly #hashTokens: number;
  readonly #sharedCache = new HashTable();
  readonly #replicas = new Map<string, { readonly cache: HashTable; readonly sums: Sums }>();
  #chars = 0;
  #tokensOfChars = 0;
  #withoutHashes = 0;

  /** `hashTokens`: the number of tokens per prefix hash. */
  constructor(hashTokens: number) {
    this.#hashTokens = hashTokens;
  }

  add(request: TracedRequest): void {
    const { cache, sums } = this.#cacheOf(request.replica);
    const { inputTokens, cachedTokens, promptChars } = request;
    sums.requests += 1;
    sums.input += inputTokens;
    if (cachedTokens !== undefined) {
      sums.cached += cachedTokens;
      sums.inputMeasured += inputTokens;
    }
    sums.asRouted += this.#toTokens(hitAndFill(cache, request), request);
    sums.shared += this.#toTokens(hitAndFill(this.#sharedCache, request), request);
    if (countHashes(request) === 0) this.#withoutHashes += 1;
    if (promptChars !== undefined) {
      this.#chars += promptChars;
      this.#tokensOfChars += inputTokens;
    }
  }

  summarize(): CacheSummary {
    const replicas = [...this.#replicas].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      replicas: replicas.map(([replica, { sums }]) => ({ replica, ...toShares(sums) })),
      all: toShares(replicas.map(([, { sums }]) => sums).reduce(addSums, NO_SUMS)),
      chars_per_token: this.#tokensOfChars === 0 ? null : this.#chars / this.#tokensOfChars,
      requests_without_hashes: this.#withoutHashes,
    };
  }

  #cacheOf(replica: string) {
    let known = this.#replicas.get(replica);
    if (known === undefined) {
      known = { cache: new HashTable(), sums: { ...NO_SUMS } };
      this.#replicas.set(replica, known);
    }
    return known;
  }

  #toTokens(hashes: number, { inputTokens }: TracedRequest): number {
    return Math.min(hashes * this.#hashTokens, inputTokens);
  }
}

/** Returns how many of the request's first blocks the cache has, and adds the others. */
function hitAndFill(cache: HashTable, request: TracedRequest): number {
  const count = countHashes(request);
  let hits = 0;
  while (hits < count && cache.has(request.hashes, hits)) hits += 1;
  for (let index = hits; index < count; index += 1) cache.numberOf(request.hashes, index, 0);
  return hits;
}

function addSums(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    input: a.input + b.input,
    cached: a.cached + b.cached,
    inputMeasured: a.inputMeasured + b.inputMeasured,
    asRouted: a.asRouted + b.asRouted,
    shared: a.shared + b.shared,
  };
}

function toShares({ requests, input, cached, inputMeasured, asRouted, shared }: Sums): CacheShares {
  return {
    requests,
    input_tokens: input,
    measured: inputMeasured === 0 ? null : cached / inputMeasured,
    possible_as_routed: input === 0 ? 0 : asRouted / input,
    possible_shared: input === 0 ? 0 : shared / input,
  };
}
