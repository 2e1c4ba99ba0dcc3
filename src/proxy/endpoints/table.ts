import type { Config } from '#config';
import { TRANSCRIPTIONS, TRANSLATIONS } from './audio.ts';
import { CHAT_COMPLETIONS } from './chat-completions.ts';
import { COMPLETIONS } from './completions.ts';
import { EMBEDDINGS } from './embeddings.ts';
import { COUNT_TOKENS, MESSAGES } from './messages.ts';
import { CLASSIFY } from './non-generative/classify.ts';
import { POOLING } from './non-generative/pooling.ts';
import { RERANK } from './non-generative/rerank.ts';
import { SCORE } from './non-generative/score.ts';
import { DETOKENIZE, TOKENIZE } from './non-generative/tokenize.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { RESPONSES } from './responses.ts';

type FurtherEndpoint = Config['endpoints'][number];

/** The endpoints that are always forwarded and recorded. All endpoints are called by POST. */
const BASIC_ENDPOINTS: readonly RecordedEndpoint[] = [CHAT_COMPLETIONS, COMPLETIONS, EMBEDDINGS];

/** The endpoints that `endpoints` of the configuration switches on. */
const FURTHER_ENDPOINTS: Readonly<Record<FurtherEndpoint, readonly RecordedEndpoint[]>> = {
  responses: [RESPONSES],
  messages: [MESSAGES, COUNT_TOKENS],
  rerank: RERANK,
  score: SCORE,
  classify: CLASSIFY,
  pooling: POOLING,
  tokenize: TOKENIZE,
  detokenize: DETOKENIZE,
  'audio/transcriptions': [TRANSCRIPTIONS],
  'audio/translations': [TRANSLATIONS],
};

/** All endpoints that can be recorded. */
export const RECORDED_ENDPOINTS: readonly RecordedEndpoint[] = [
  ...BASIC_ENDPOINTS,
  ...Object.values(FURTHER_ENDPOINTS).flat(),
];

/** GET: the models of the next replica in turn. Not recorded. */
export const MODELS_PATH = '/v1/models';

/** GET, with the id of a model after it: that model. Only if the gateway lists all models itself. */
export const MODEL_PREFIX = '/v1/models/';

/** GET: the usage of the client that asks, with `history.client_usage`. */
export const USAGE_PATH = '/v1/usage';

/** GET: whether the gateway takes requests. */
export const HEALTH_PATH = '/healthz';

const byPath = new Map(RECORDED_ENDPOINTS.map((endpoint) => [endpoint.path, endpoint]));

/** The endpoint with this path, whether it is switched on or not. */
export function findRecordedEndpoint(path: string): RecordedEndpoint | undefined {
  return byPath.get(path);
}

/** The endpoints that are on, by path. `further`: those that the configuration switches on. */
export function endpointsByPath(further: readonly FurtherEndpoint[]): ReadonlyMap<string, RecordedEndpoint> {
  const endpoints = [...BASIC_ENDPOINTS, ...further.flatMap((name) => FURTHER_ENDPOINTS[name])];
  return new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]));
}
