/** The `gen_ai.operation.name` of each recorded endpoint. */
export const OPERATIONS = {
  '/v1/chat/completions': 'chat',
  '/v1/completions': 'text_completion',
  '/v1/embeddings': 'embeddings',
} as const;

/** The path of a recorded endpoint. */
export type RecordedEndpoint = keyof typeof OPERATIONS;

/** The operation of an endpoint; undefined for an endpoint that only another version records. */
export function toOperation(endpoint: string): string | undefined {
  return isRecordedEndpoint(endpoint) ? OPERATIONS[endpoint] : undefined;
}

function isRecordedEndpoint(endpoint: string): endpoint is RecordedEndpoint {
  return Object.hasOwn(OPERATIONS, endpoint);
}
