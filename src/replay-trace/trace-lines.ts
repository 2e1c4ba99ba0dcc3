import { HashTable } from './hash-table.ts';
import { countHashes, type TracedRequest } from './traced-request.ts';

/** How the text blocks of prefix hashes become the token blocks of a trace. */
export interface BlockSizes {
  /** Tokens that one id of the trace stands for. */
  readonly blockTokens: number;
  /** Characters that one prefix hash stands for: `prefix_hash.block_chars` of the gateway. */
  readonly blockChars: number;
  /** Characters a token, on average; a fraction if need be. */
  readonly charsPerToken: number;
}

/** Whether a block of the trace is at least as long as one that was hashed: a finer trace is not to be had. */
export function isCoarseEnough({ blockTokens, blockChars, charsPerToken }: BlockSizes): boolean {
  return blockTokens * charsPerToken >= blockChars;
}

/**
 * Makes the lines of a trace in the format of Mooncake's published traces (kvcache-ai/Mooncake,
 * FAST25-release/traces): `timestamp` in milliseconds since the first request, `input_length` and `output_length`
 * in tokens, and in `hash_ids` one small integer for each block of the input, the last one short; numbered in the
 * order of their first appearance. Equal ids mean that the input is equal up to there.
 *
 * Requests have to come in the order of their arrival.
 */
export function createTraceLines(sizes: BlockSizes): (request: TracedRequest) => string {
  const numbers = new HashTable();
  let next = 0;
  let firstAtMs: number | null = null;

  const toIds = (request: TracedRequest): string => {
    let ids = '';
    for (let block = 0; block * sizes.blockTokens < request.inputTokens; block += 1) {
      const index = findHash(request, block, sizes);
      const id = index === null ? next : numbers.numberOf(request.hashes, index, next);
      if (id === next) next += 1;
      ids += block === 0 ? id : `, ${id}`;
    }
    return ids;
  };
  return (request) => {
    firstAtMs ??= request.atMs;
    return (
      `{"timestamp": ${request.atMs - firstAtMs}, "input_length": ${request.inputTokens}, ` +
      `"output_length": ${request.outputTokens}, "hash_ids": [${toIds(request)}]}\n`
    );
  };
}

/**
 * Which of the request's hashes says that its input is the same up to the end of this block: the first one that
 * reaches as far. Null if none does, and for the last block where it is short: two requests that share a hash may
 * end at different places in it, and replay tools give one id one text.
 */
function findHash(request: TracedRequest, block: number, sizes: BlockSizes): number | null {
  const endTokens = (block + 1) * sizes.blockTokens;
  if (endTokens > request.inputTokens) return null;
  const index = Math.ceil((endTokens * sizes.charsPerToken) / sizes.blockChars) - 1;
  return index < countHashes(request) ? index : null;
}
