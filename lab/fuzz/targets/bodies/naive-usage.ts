/** The names of prompt and completion tokens in `usage`, by path, as the APIs document them. */
const NAMES: ReadonlyMap<
  string,
  { readonly prompt: readonly string[]; readonly completion: readonly string[] }
> = new Map([
  ['/v1/chat/completions', { prompt: ['prompt_tokens'], completion: ['completion_tokens'] }],
  ['/v1/completions', { prompt: ['prompt_tokens'], completion: ['completion_tokens'] }],
  [
    '/v1/responses',
    { prompt: ['input_tokens', 'prompt_tokens'], completion: ['output_tokens', 'completion_tokens'] },
  ],
  [
    '/v1/audio/transcriptions',
    { prompt: ['input_tokens', 'prompt_tokens'], completion: ['output_tokens', 'completion_tokens'] },
  ],
  ['/v1/messages', { prompt: [], completion: ['output_tokens'] }],
  ['/v1/embeddings', { prompt: ['prompt_tokens'], completion: ['completion_tokens'] }],
  ['/v1/rerank', { prompt: ['prompt_tokens', 'input_tokens'], completion: ['completion_tokens'] }],
]);

/**
 * The tokens in a whole answer, found with JSON.parse. Null: the text is not what JSON.stringify writes (duplicate
 * members, say, have no one meaning), or the endpoint is not known here. A figure that could be meant in two ways is left
 * out.
 */
export function figuresOf(path: string, text: string): object | null {
  const names = NAMES.get(path);
  const answer = parseCanonical(text);
  if (names === undefined || answer === null) return null;
  const { usage } = answer;
  const found: Record<string, unknown> = typeof usage === 'object' && usage !== null ? { ...usage } : {};
  return {
    ...only('promptTokens', found, names.prompt),
    ...only('completionTokens', found, names.completion),
  };
}

function only(figure: string, usage: Record<string, unknown>, names: readonly string[]): object {
  const counts = names.map((name) => usage[name]).filter(isCount);
  return counts.length === 1 && names.filter((name) => name in usage).length === 1
    ? { [figure]: counts[0] }
    : {};
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function parseCanonical(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject && JSON.stringify(value) === text ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
