import { HashTable } from './hash-table.ts';
import { countHashes, type TracedRequest } from './traced-request.ts';

/**
 * How much of the input came from a cache, and how much could have. Shares are of the input tokens, from 0 to 1.
 * The two possible ones are what a cache would have hit that never forgets and is filled at once, in whole blocks
 * of the prefix hashes: an engine, whose blocks are smaller, may hit up to one such block more in each request.
 */
export interface CacheShares {
  readonly requests: number;
  readonly input_tokens: number;
  /** By the engine's own figures, of the requests that have them; null if none has. */
  readonly measured: number | null;
  /** With a cache in each replica, and requests where they went. */
  readonly possible_as_routed: number;
  /** With one cache that all replicas share. */
  readonly possible_shared: number;
}

/** The shares of each replica, in the order of their names, and of all together. */
export interface CacheSummary {
  readonly replicas: readonly (CacheShares & { readonly replica: string })[];
  readonly all: CacheShares;
  /** Characters a token, over the requests that tell both; null if none does. */
  readonly chars_per_token: number | null;
  /** Requests without prefix hashes: shorter than a block, or made of token ids. They count as no hit. */
  readonly requests_without_hashes: number;
}

/** Sums over requests; tokens. */
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

/** Follows what caches could hold, request by request in the order of their arrival. */
export class PrefixHits {
  readonly #hashTokens: number;
  readonly #sharedCache = new HashTable();
  readonly #replicas = new Map<string, { readonly cache: HashTable; readonly sums: Sums }>();
  #chars = 0;
  #tokensOfChars = 0;
  #withoutHashes = 0;

  /** `hashTokens`: how many tokens a prefix hash stands for. */
  constructor(hashTokens: number) {
    this.#hashTokens = hashTokens;
  }

  add(request: TracedRequest): void {
    const { cache, sums } = this.#of(request.replica);
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

  #of(replica: string) {
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

/** How many of the request's first blocks the cache has; from now on it has all. */
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
