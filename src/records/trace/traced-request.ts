import { OPERATIONS, type RequestRecord } from '#otel/record/registry';

/** The facts of one request that a trace for replay and the summary of prefix caching need. */
export interface TracedRequest {
  readonly id: string;
  /** When it arrived and when its response ended, in milliseconds of Unix time. */
  readonly atMs: number;
  readonly endedAtMs: number;
  readonly replica: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens that the engine took from its cache; undefined if it does not report them. */
  readonly cachedTokens: number | undefined;
  /** The length of the request text in characters; undefined for token ids. */
  readonly promptChars: number | undefined;
  /** The prefix hashes in order, HASH_BYTES each. Many are held at once: strings would take five times the memory. */
  readonly hashes: Buffer;
}

/** A prefix hash is 16 hex digits. */
export const HASH_BYTES = 8;

/** No prompt is this long. Without a limit, a wrong number from a replica would make an endless line of the trace. */
const MAX_TOKENS = 100_000_000;

/** The operations that generate text. */
const GENERATING: ReadonlySet<string> = new Set(['chat', 'text_completion']);

const NO_HASHES = Buffer.alloc(0);

/**
 * Converts a record to a request for replay. Null if it generates nothing, as an embedding, or has no token counts of a
 * replica, as with failures and cut streams: its work is unknown, so that it cannot be replayed.
 */
export function toTracedRequest(record: RequestRecord): TracedRequest | null {
  const { replica, model, prompt_tokens: inputTokens, completion_tokens: outputTokens } = record;
  const atMs = Date.parse(record.ts);
  if (replica === undefined || model === undefined || Number.isNaN(atMs)) return null;
  // Some engines report 0 completion tokens of embeddings, scores and classes.
  if (!GENERATING.has(OPERATIONS.get(record.endpoint) ?? '')) return null;
  if (!isTokenCount(inputTokens) || !isTokenCount(outputTokens)) return null;
  return {
    id: record.request_id,
    atMs,
    endedAtMs: atMs + record.e2e_ms,
    replica,
    model,
    inputTokens,
    outputTokens,
    cachedTokens: isTokenCount(record.cached_tokens) ? record.cached_tokens : undefined,
    promptChars: record.prompt_chars,
    hashes: toBytes(record.prefix_hashes ?? []),
  };
}

/** Returns the number of prefix hashes of the request. */
export function countHashes({ hashes }: TracedRequest): number {
  return hashes.length / HASH_BYTES;
}

function isTokenCount(value: number | undefined): value is number {
  return value !== undefined && value >= 0 && value <= MAX_TOKENS;
}

/** As a gateway writes it. Buffer's own reader of hex takes only the low byte of each character. */
const HASH = /^[0-9a-f]{16}$/;

/** Returns no hashes if one of them is not as a gateway writes it. */
function toBytes(hashes: readonly string[]): Buffer {
  return hashes.every((hash) => HASH.test(hash)) ? Buffer.from(hashes.join(''), 'hex') : NO_HASHES;
}
