import { HashTable } from './hash-table.ts';
import { countHashes, type TracedRequest } from './traced-request.ts';

/** How the text blocks of prefix hashes are converted to the token blocks of a trace. */
export interface BlockSizes {
  /** Tokens per id of the trace. */
  readonly blockTokens: number;
  /** Characters per prefix hash: `prefix_hash.block_chars` of the gateway. */
  readonly blockChars: number;
  /** Average characters per token, which may be a fraction. */
  readonly charsPerToken: number;
}

/** Whether a block of the trace is at least as long as a hashed block. The hashes allow no finer trace. */
export function isCoarseEnough({ blockTokens, blockChars, charsPerToken }: BlockSizes): boolean {
  return blockTokens * charsPerToken >= blockChars;
}

/**
 * Creates the function that formats the lines of a trace in the format of Mooncake's published traces
 * (kvcache-ai/Mooncake, FAST25-release/traces): `timestamp` in milliseconds since the first request, `input_length` and
 * `output_length` in tokens, and `hash_ids` with one small integer per block of the input, including a short last
 * block. Ids are numbered in the order of their first appearance. An equal id means that the input is equal up to the
 * end of its block.
 *
 * Requests must come in the order of their arrival.
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
 * Returns the index of the first prefix hash that covers the request's input up to the end of this block. Null if there
 * is none, and for a short last block: two requests with the same hash may end at different places in it, but replay
 * tools use one text per id.
 */
function findHash(request: TracedRequest, block: number, sizes: BlockSizes): number | null {
  const endTokens = (block + 1) * sizes.blockTokens;
  if (endTokens > request.inputTokens) return null;
  const index = Math.ceil((endTokens * sizes.charsPerToken) / sizes.blockChars) - 1;
  return index < countHashes(request) ? index : null;
}
