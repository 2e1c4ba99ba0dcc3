import type { ConfigFile } from '../schema.ts';

/** The paths that are always recorded. All are called by POST. */
export const BASIC_PATHS: readonly string[] = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings'];

/** The paths that each name in `endpoints` stands for. */
export const PATHS_OF_ENDPOINT: Readonly<Record<ConfigFile['endpoints'][number], readonly string[]>> = {
  responses: ['/v1/responses'],
  messages: ['/v1/messages', '/v1/messages/count_tokens'],
  rerank: ['/rerank', '/v1/rerank', '/v2/rerank', '/reranking', '/v1/reranking'],
  score: ['/score', '/v1/score'],
  classify: ['/classify', '/v1/classify'],
  pooling: ['/pooling'],
  tokenize: ['/tokenize', '/v1/tokenize'],
  detokenize: ['/detokenize', '/v1/detokenize'],
  'audio/transcriptions': ['/v1/audio/transcriptions'],
  'audio/translations': ['/v1/audio/translations'],
};
