import { readCapture } from '../../reading/captures.ts';
import type { EngineCase } from '../engine.ts';

/*
 * What engines answer at the endpoints that `endpoints` switches on. Nothing is asked for in the client's place there, so
 * that an answer is the same for each `stream_options`.
 */

/** A request, the answer to it, and what the record must say. */
export interface Told extends Pick<EngineCase, 'name' | 'source' | 'request' | 'record'> {
  readonly path: string;
  /** The bytes of a capture, or the JSON of an answer. */
  readonly answer: { readonly capture: string } | { readonly json: unknown };
}

/** A usage without a completion. */
export const USAGE = { prompt_tokens: 9, total_tokens: 9 };
/** vLLM's UsageInfo, with every member. */
export const VLLM_USAGE = { ...USAGE, completion_tokens: 0, prompt_tokens_details: null };
/** Facts of a record without tokens. */
export const NO_TOKENS = { prompt_tokens: undefined, completion_tokens: undefined };
/** The text of most requests. */
export const TEXT = 'The sea is wide';
/** Facts of a record of a request with that text. */
export const TEXT_FACTS = { prompt_chars: TEXT.length, stream: false, status: 200 };
/** A query with two documents. */
export const PAIR = { query: 'sea', documents: ['wide', 'deep'] };
/** Facts of a record of that query. */
export const PAIR_FACTS = { prompt_chars: 11, stream: false, prefix_hashes: undefined };

/** A request for a response. */
export const RESPONSE = { path: '/v1/responses', request: { input: TEXT } };
/** A request for a message. */
export const MESSAGE = {
  path: '/v1/messages',
  request: { max_tokens: 8, messages: [{ role: 'user', content: TEXT }] },
};
/** Where a captured answer is from. */
export const captured = (capture: string) => ({ source: `captured: ${capture}`, answer: { capture } });
/** Facts of the record of a captured answer. */
export const ofCapture = { prompt_tokens: 11, response_model: 'tiny', prompt_chars: TEXT.length };

/** The cases of the matrix for what an engine answers. */
export function toCases(told: readonly Told[]): readonly EngineCase[] {
  return told.map(({ path, answer, ...rest }) => ({
    ...rest,
    endpoint: path,
    toEvents: () => [],
    told: 'capture' in answer ? toldByCapture(answer.capture) : toldAsJson(answer.json),
    isComparable: (options) => options === undefined,
  }));
}

function toldAsJson(json: unknown): NonNullable<EngineCase['told']> {
  return { contentType: 'application/json', body: Buffer.from(JSON.stringify(json)) };
}

function toldByCapture(name: string): NonNullable<EngineCase['told']> {
  const { headers, body } = readCapture(name);
  const at = headers.findIndex((text) => text.toLowerCase() === 'content-type');
  return { contentType: headers[at + 1] ?? '', body };
}
