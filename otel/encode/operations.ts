/** `gen_ai.operation.name` by the path of the endpoint whose requests are recorded. */
export const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'text_completion'],
  ['/v1/embeddings', 'embeddings'],
  // The conventions name no operation for these.
  ['/rerank', 'rerank'],
  ['/v1/rerank', 'rerank'],
  ['/v2/rerank', 'rerank'],
  ['/reranking', 'rerank'],
  ['/v1/reranking', 'rerank'],
  ['/score', 'score'],
  ['/v1/score', 'score'],
  ['/classify', 'classify'],
  ['/v1/classify', 'classify'],
  ['/pooling', 'pooling'],
  ['/tokenize', 'tokenize'],
  ['/v1/tokenize', 'tokenize'],
  ['/detokenize', 'detokenize'],
  ['/v1/detokenize', 'detokenize'],
]);
