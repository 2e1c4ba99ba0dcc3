/** `gen_ai.operation.name` by the endpoint whose requests are recorded. */
export const OPERATIONS = {
  '/v1/chat/completions': 'chat',
  '/v1/completions': 'text_completion',
  '/v1/embeddings': 'embeddings',
} as const;

/** The path of an endpoint whose requests are recorded. */
export type RecordedEndpoint = keyof typeof OPERATIONS;

/** The operation of a record; undefined where a record of another version has another endpoint. */
export function toOperation(endpoint: string): string | undefined {
  return isRecordedEndpoint(endpoint) ? OPERATIONS[endpoint] : undefined;
}

function isRecordedEndpoint(endpoint: string): endpoint is RecordedEndpoint {
  return Object.hasOwn(OPERATIONS, endpoint);
}
