import type { Ending } from '../exchange.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { UsageFigures } from '../response/usage-tally.ts';

/** Tokens that a request is expected to use. */
export interface TokenEstimate {
  readonly prompt: number;
  /** With those of the completion, if the request limits them. */
  readonly total: number;
}

/** What a response says of the tokens that it took. */
export interface ResponseUse {
  readonly status: number;
  readonly isEventStream: boolean;
  /** Events with output. */
  readonly outputCount: number;
  readonly usage: UsageFigures;
}

/** A usual token of English text has four characters. */
const CHARS_PER_TOKEN = 4;

/** More than any request can use. */
const MAX_TOKENS = 1e9;

/** Estimates the tokens of a request before it is sent. `promptChars`: undefined if its text is not known. */
export function estimateTokens(
  { maxTokens = 0, n = 1 }: Pick<RequestFacts, 'maxTokens' | 'n'>,
  promptChars: number | undefined,
): TokenEstimate {
  const prompt = Math.ceil((promptChars ?? 0) / CHARS_PER_TOKEN);
  return { prompt, total: Math.min(prompt + maxTokens * Math.max(1, n), MAX_TOKENS) };
}

/**
 * The tokens of a request that got a response of its replica, complete or not: what the engine reported. Where it did
 * not, each event of a stream counts as one token; the estimate stays for another response, and an error costs nothing.
 */
export function toUsedTokens(
  estimate: TokenEstimate,
  { status, isEventStream, outputCount, usage }: ResponseUse,
): number {
  const { promptTokens, completionTokens } = usage;
  if (promptTokens !== undefined || completionTokens !== undefined) {
    const used = (promptTokens ?? estimate.prompt) + (completionTokens ?? outputCount);
    return Math.min(Math.max(0, used), MAX_TOKENS);
  }
  if (status >= 400) return 0;
  return isEventStream ? estimate.prompt + outputCount : estimate.total;
}

/** The endings in which a replica may have worked for nobody. */
const ABANDONED: ReadonlySet<Ending | null> = new Set(['client_closed', 'upstream_timeout', 'shutting_down']);

/** The tokens of a request without a response: the estimate if a replica has worked on it until somebody gave up. */
export function toTokensWithoutResponse(
  { total }: TokenEstimate,
  ending: Ending | null,
  isWritten: boolean,
): number {
  return isWritten && ABANDONED.has(ending) ? total : 0;
}
