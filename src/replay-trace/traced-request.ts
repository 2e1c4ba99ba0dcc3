import type { RequestRecord } from '#otel/encode/request-record.ts';

/** What a trace for replay and the figures of prefix caching need of one request. */
export interface TracedRequest {
  readonly id: string;
  /** When it arrived, and when its response ended: milliseconds of Unix time. */
  readonly atMs: number;
  readonly endedAtMs: number;
  readonly replica: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens that the engine took from its cache; undefined where it does not tell. */
  readonly cachedTokens: number | undefined;
  /** Length of the request text, in characters; undefined for token ids. */
  readonly promptChars: number | undefined;
  /** The prefix hashes, HASH_BYTES each, in order: many are held at once, and strings would take five times as much. */
  readonly hashes: Buffer;
}

/** A prefix hash is 16 hex digits. */
export const HASH_BYTES = 8;

/** No prompt is as long; a replica may report any number, and each block of a prompt is written. */
const MAX_TOKENS = 100_000_000;

const NO_HASHES = Buffer.alloc(0);

/**
 * The request of a record that a replica answered with token counts. Null for any other: failures, streams that
 * were cut, embeddings. How much work they were is not known, so they cannot be replayed.
 */
export function toTracedRequest(record: RequestRecord): TracedRequest | null {
  const { replica, model, prompt_tokens: inputTokens, completion_tokens: outputTokens } = record;
  const atMs = Date.parse(record.ts);
  if (replica === undefined || model === undefined || Number.isNaN(atMs)) return null;
  if (record.endpoint === '/v1/embeddings') return null; // some engines report 0 completion tokens
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

/** How many prefix hashes the request has. */
export function countHashes({ hashes }: TracedRequest): number {
  return hashes.length / HASH_BYTES;
}

function isTokenCount(value: number | undefined): value is number {
  return value !== undefined && value >= 0 && value <= MAX_TOKENS;
}

/** None if they are not what a gateway writes. */
function toBytes(hashes: readonly string[]): Buffer {
  const bytes = Buffer.from(hashes.join(''), 'hex');
  return hashes.every(({ length }) => length === 2 * HASH_BYTES) &&
    bytes.length === hashes.length * HASH_BYTES
    ? bytes
    : NO_HASHES;
}
