import { readMessages } from '../chat-completions.ts';
import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/** vLLM has the first, SGLang both: its own `/classify` has `text` instead of `input`. */
const PATHS = ['/classify', '/v1/classify'];

/**
 * Classification: the class of each text of `input`, or of a chat. The engine reads each as one prompt, so they are
 * hashed as those of embeddings and of chats. Usage: `usage`.
 */
export const CLASSIFY: readonly RecordedEndpoint[] = PATHS.map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: ['input', 'text', 'messages'],
  readText: (reader, [input, text, messages]) =>
    messages === undefined ? reader.addStrings(input ?? text) : readMessages(reader, messages),
}));
