import { CHAT_COMPLETIONS } from './chat-completions.ts';
import { COMPLETIONS } from './completions.ts';
import { EMBEDDINGS } from './embeddings.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/** The endpoints whose requests are forwarded and recorded. All are called by POST. */
export const RECORDED_ENDPOINTS: readonly RecordedEndpoint[] = [CHAT_COMPLETIONS, COMPLETIONS, EMBEDDINGS];

/** GET: the models of the next replica in turn. Not recorded. */
export const MODELS_PATH = '/v1/models';

/** GET: whether the gateway takes requests. */
export const HEALTH_PATH = '/healthz';

const byPath = new Map(RECORDED_ENDPOINTS.map((endpoint) => [endpoint.path, endpoint]));

/** The recorded endpoint with this path. */
export function findRecordedEndpoint(path: string): RecordedEndpoint | undefined {
  return byPath.get(path);
}
