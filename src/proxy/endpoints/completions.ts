import { CHOICES_ENDPOINT } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { CUT_PLACEHOLDERS, LEAVE_ALL, undoRulesFor } from './undo-rules.ts';

const UNDO_RULES = { llamacpp: LEAVE_ALL, ollama: CUT_PLACEHOLDERS };

/** OpenAI's legacy completions: `prompt` is a string, a list of strings, or token ids. */
export const COMPLETIONS: RecordedEndpoint = {
  ...CHOICES_ENDPOINT,
  path: '/v1/completions',
  textMembers: ['prompt'],
  readText: (reader, [prompt]) => reader.addStrings(prompt),
  undoRules: (engine, continuousUsageStats) => undoRulesFor(engine, continuousUsageStats, UNDO_RULES),
};
