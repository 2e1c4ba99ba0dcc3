import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { countItemTexts } from './item-texts.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/** vLLM has both, SGLang `/v1/score`. */
const PATHS = ['/score', '/v1/score'];

/** The names that vLLM has for the two sides of a pair, and SGLang's `query`. */
const SIDES = ['text_1', 'text_2', 'queries', 'query', 'documents', 'items', 'data_1', 'data_2'];

/**
 * Scoring: how similar the texts of pairs are. The engine reads each pair as one prompt, as many as there are pairs, so
 * there are no hashes. Usage: `usage`.
 */
export const SCORE: readonly RecordedEndpoint[] = PATHS.map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: SIDES,
  readText: countItemTexts,
}));
