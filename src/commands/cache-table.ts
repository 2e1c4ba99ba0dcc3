import type { CacheShares, CacheSummary } from '../replay-trace/prefix-hits.ts';
import type { BlockSizes } from '../replay-trace/trace-lines.ts';
import { toTable } from './terminal/table.ts';

const HEAD = ['REPLICA', 'REQUESTS', 'INPUT TOKENS', 'CACHED', 'POSSIBLE AS ROUTED', 'POSSIBLE SHARED'];

/** The summary as a table for people, and what it rests on. */
export function toCacheText(summary: CacheSummary, { blockChars, charsPerToken }: BlockSizes): string {
  const rows = [...summary.replicas, { ...summary.all, replica: 'all' }].map(toRow);
  const measured = summary.chars_per_token?.toFixed(2) ?? 'unknown';
  const hashTokens = Math.round(blockChars / charsPerToken);
  return `${toTable(HEAD, rows)}
CACHED is what the engines report. POSSIBLE is what caches that never forget would have hit: one in each replica,
with requests where they went, and one that all replicas share. It counts whole blocks of the prefix hashes, taken
as ${hashTokens} tokens each: engines, whose blocks are smaller, may hit up to one more in a request.
Characters a token: ${charsPerToken} taken (--chars-per-token), ${measured} measured. Requests without prefix hashes, counted
as no hit: ${summary.requests_without_hashes}.
`;
}

function toRow(shares: CacheShares & { readonly replica: string }): readonly (string | number)[] {
  const { replica, requests, input_tokens, measured, possible_as_routed, possible_shared } = shares;
  const cells = [measured, possible_as_routed, possible_shared].map(toPercent);
  return [replica, requests, input_tokens, ...cells];
}

function toPercent(share: number | null): string {
  return share === null ? 'unknown' : `${(share * 100).toFixed(1)} %`;
}
