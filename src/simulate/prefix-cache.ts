/** Tokens per block, the default of vLLM. */
const BLOCK_TOKENS = 16;

/** A prompt, reduced to what counting needs. */
export interface Prompt {
  /** The text of the request, or one UTF-16 unit per token if the client sent token ids. */
  readonly text: string;
  readonly charsPerToken: number;
  readonly tokens: number;
}

/** Counts about four characters per token, as in English text. */
export function textPrompt(text: string): Prompt {
  return { text, charsPerToken: 4, tokens: Math.max(1, Math.ceil(text.length / 4)) };
}

/** A prompt of token ids. The cache only needs different text for different ids. */
export function tokenPrompt(ids: readonly number[]): Prompt {
  return { text: ids.map((id) => String.fromCharCode(id)).join(''), charsPerToken: 1, tokens: ids.length };
}

/** Tokens of a prompt that were in the cache, and tokens that entered it now. */
export interface CacheHit {
  readonly cachedTokens: number;
  readonly createdCacheTokens: number;
}

/**
 * The prefixes that a replica has seen, as chained digests of whole blocks. `maxBlocks` bounds the memory; no prompt text
 * is kept.
 */
export class PrefixCache {
  readonly #maxBlocks: number;
  /** Insertion order is the order of use: the first key is the least recently used. */
  readonly #blocks = new Set<number>();

  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  /**
   * Looks up the prompt and remembers it. Like vLLM it never counts the last token as cached, since that token must be
   * computed.
   */
  remember(model: string, prompt: Prompt): CacheHit {
    const blockChars = BLOCK_TOKENS * prompt.charsPerToken;
    const blockCount = Math.min(Math.floor((prompt.tokens - 1) / BLOCK_TOKENS), this.#maxBlocks);
    let digest = digestOf(0, model, 0, model.length);
    let hits = 0;
    for (let block = 0; block < blockCount; block += 1) {
      digest = digestOf(digest, prompt.text, block * blockChars, (block + 1) * blockChars);
      if (this.#blocks.delete(digest) && hits === block) hits += 1;
      this.#blocks.add(digest);
    }
    this.#evict();
    return {
      cachedTokens: hits * BLOCK_TOKENS,
      createdCacheTokens: Math.max(0, blockCount - hits) * BLOCK_TOKENS,
    };
  }

  #evict(): void {
    for (const oldest of this.#blocks) {
      if (this.#blocks.size <= this.#maxBlocks) return;
      this.#blocks.delete(oldest);
    }
  }
}

/** cyrb53 (public domain, bryc) over a range, chained: 53 bits fit a number, and a simulation needs no secure hash. */
function digestOf(previous: number, text: string, from: number, to: number): number {
  let high = 0xdeadbeef ^ (previous >>> 0);
  let low = 0x41c6ce57 ^ Math.floor(previous / 2 ** 32);
  for (let index = from; index < to; index += 1) {
    const unit = text.charCodeAt(index);
    high = Math.imul(high ^ unit, 2654435761);
    low = Math.imul(low ^ unit, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 2 ** 32 * (2097151 & low) + (high >>> 0);
}
