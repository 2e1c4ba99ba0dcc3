import { toFailureJson } from '../failure.ts';
import { CHOICES_ANSWER, readChoicesAnswer, readChoicesEvent, toChoicesErrorEvent } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { CUT_PLACEHOLDERS, LEAVE_ALL, undoRulesFor } from './undo-rules.ts';

const UNDO_RULES = { llamacpp: LEAVE_ALL, ollama: CUT_PLACEHOLDERS };

/** OpenAI's legacy completions: `prompt` is a string, a list of strings, or token ids. */
export const COMPLETIONS: RecordedEndpoint = {
  path: '/v1/completions',
  needsModel: true,
  isForm: false,
  keepsResponses: false,
  textMembers: ['prompt'],
  readText: (reader, [prompt]) => reader.addStrings(prompt),
  maxTokensMembers: ['max_completion_tokens', 'max_tokens'],
  undoRules: (engine, continuousUsageStats) => undoRulesFor(engine, continuousUsageStats, UNDO_RULES),
  readEvent: readChoicesEvent,
  usageInStream: 'last',
  needsEndMark: false,
  wantedOfAnswer: CHOICES_ANSWER,
  readAnswer: readChoicesAnswer,
  toErrorBody: toFailureJson,
  toErrorEvent: toChoicesErrorEvent,
};
