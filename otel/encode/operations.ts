/** `gen_ai.operation.name` by the path of the endpoint whose requests are recorded. */
export const OPERATIONS: ReadonlyMap<string, string> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'text_completion'],
  ['/v1/embeddings', 'embeddings'],
]);
