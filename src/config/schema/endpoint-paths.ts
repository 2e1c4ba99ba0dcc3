/** The paths that are always recorded. All are called by POST. */
export const BASIC_PATHS: readonly string[] = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings'];

/** The endpoints that are recorded beside those, by their names in `endpoints`, with the paths that each stands for. */
export const PATHS_OF_ENDPOINT = {
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
} as const satisfies Readonly<Record<string, readonly string[]>>;

type FurtherEndpoint = keyof typeof PATHS_OF_ENDPOINT;

/** Their names. */
export const FURTHER_ENDPOINTS = Object.keys(PATHS_OF_ENDPOINT) as [FurtherEndpoint, ...FurtherEndpoint[]];
