import { toFailureJson } from '../failure.ts';
import { CHOICES_ANSWER, readChoicesAnswer, readChoicesEvent, toChoicesErrorEvent } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/** Embeddings: `input` is a string, a list of strings, or token ids. Engines do not stream them. */
export const EMBEDDINGS: RecordedEndpoint = {
  path: '/v1/embeddings',
  needsModel: true,
  isForm: false,
  keepsResponses: false,
  textMembers: ['input'],
  readText: (reader, [input]) => reader.addStrings(input),
  maxTokensMembers: ['max_completion_tokens', 'max_tokens'],
  undoRules: null,
  readEvent: readChoicesEvent,
  usageInStream: 'last',
  needsEndMark: false,
  wantedOfAnswer: CHOICES_ANSWER,
  readAnswer: readChoicesAnswer,
  toErrorBody: toFailureJson,
  toErrorEvent: toChoicesErrorEvent,
};
