/**
 * `gen_ai.operation.name` by the path of the endpoint whose requests are recorded. `count_tokens` is our own: the
 * convention allows other names for what it does not define.
 */
export const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'text_completion'],
  ['/v1/embeddings', 'embeddings'],
  ['/v1/responses', 'chat'],
  ['/v1/messages', 'chat'],
  ['/v1/messages/count_tokens', 'count_tokens'],
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
  ['/v1/audio/transcriptions', 'audio/transcriptions'],
  ['/v1/audio/translations', 'audio/translations'],
]);

/** The paths of Anthropic's API. */
const ANTHROPIC_PATHS: ReadonlySet<string> = new Set(['/v1/messages', '/v1/messages/count_tokens']);

/** `gen_ai.provider.name`: the format of the API, not its implementation (the convention's note 2). */
export function providerOf(endpoint: string): string {
  return ANTHROPIC_PATHS.has(endpoint) ? 'anthropic' : 'openai';
}
