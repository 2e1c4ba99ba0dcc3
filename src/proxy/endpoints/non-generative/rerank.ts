import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { countItemTexts } from './item-texts.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/** vLLM has the first three, llama.cpp all but `/v2/rerank`, SGLang `/v1/rerank`, text-embeddings-inference `/rerank`. */
const PATHS = ['/rerank', '/v1/rerank', '/v2/rerank', '/reranking', '/v1/reranking'];

/**
 * Reranking: how relevant `documents` are for `query`. text-embeddings-inference calls them `texts`, and llama.cpp takes
 * both names. The engine reads each document together with the query, as many prompts as there are documents: what two
 * requests have in common is no prefix, so there are no hashes.
 *
 * Usage: `usage` of vLLM and llama.cpp, `meta` of Cohere's API. SGLang and text-embeddings-inference answer with a list,
 * which has none.
 */
export const RERANK: readonly RecordedEndpoint[] = PATHS.map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: ['query', 'documents', 'texts'],
  readText: countItemTexts,
}));
