import { expect, test } from 'vitest';
import {
  estimateTokens,
  toTokensWithoutResponse,
  toUsedTokens,
} from '../../../src/proxy/record/used-tokens.ts';

test.each([
  [{}, undefined, { prompt: 0, total: 0 }],
  [{ maxTokens: 10 }, 41, { prompt: 11, total: 21 }],
  [{ maxTokens: 10, n: 3 }, 40, { prompt: 10, total: 40 }],
  [{ maxTokens: 10, n: 0 }, 40, { prompt: 10, total: 20 }],
  [{ maxTokens: Number.MAX_SAFE_INTEGER, n: Number.MAX_SAFE_INTEGER }, 40, { prompt: 10, total: 1e9 }],
])('the estimate of %j with %s characters is %j', (facts, promptChars, estimate) => {
  expect(estimateTokens({ maxTokens: undefined, n: undefined, ...facts }, promptChars)).toEqual(estimate);
});

const ESTIMATE = { prompt: 10, total: 110 };
const RESPONSE = { status: 200, isEventStream: true, outputCount: 7, usage: {} };

test.each([
  ['what the engine reported', { usage: { promptTokens: 5, completionTokens: 3 } }, 8],
  ['the prompt of an embedding', { isEventStream: false, outputCount: 0, usage: { promptTokens: 5 } }, 5],
  ['the events of a stream without usage', {}, 17],
  ['the estimate for an answer without usage', { isEventStream: false, outputCount: 0 }, 110],
  ['nothing for an error', { status: 400, isEventStream: false, outputCount: 0 }, 0],
  ['nothing less than nothing', { usage: { promptTokens: -50, completionTokens: 3 } }, 0],
  ['no more than any request can use', { usage: { promptTokens: 1e15, completionTokens: 3 } }, 1e9],
])('a request with a response costs %s', (_, response, tokens) => {
  expect(toUsedTokens(ESTIMATE, { ...RESPONSE, ...response })).toBe(tokens);
});

test.each([
  ['client_closed', true, 110],
  ['upstream_timeout', true, 110],
  ['client_closed', false, 0],
  ['upstream_failed', true, 0],
  ['no_replica_reachable', false, 0],
  ['rate_limit_exceeded', false, 0],
] as const)(
  'a request without a response that ended as %s, written: %s, costs %s',
  (ending, isWritten, tokens) => {
    expect(toTokensWithoutResponse(ESTIMATE, ending, isWritten)).toBe(tokens);
  },
);
