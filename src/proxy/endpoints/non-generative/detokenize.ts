import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/** vLLM and llama.cpp have the first, SGLang both. */
const PATHS = ['/detokenize', '/v1/detokenize'];

/** The text of `tokens`. The request has no text, and the model computes nothing: no hashes, no usage. */
export const DETOKENIZE: readonly RecordedEndpoint[] = PATHS.map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: [],
  readText: () => false,
}));
