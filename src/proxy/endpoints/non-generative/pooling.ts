import { readMessages } from '../chat-completions.ts';
import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/**
 * Pooling (vLLM): the hidden states of each text of `input`, or of a chat. The engine reads each as one prompt, so they
 * are hashed as those of embeddings and of chats. Usage: `usage`; an answer in bytes has none.
 */
export const POOLING: readonly RecordedEndpoint[] = [
  {
    ...WHOLE_ANSWER_ENDPOINT,
    path: '/pooling',
    textMembers: ['input', 'messages'],
    readText: (reader, [input, messages]) =>
      messages === undefined ? reader.addStrings(input) : readMessages(reader, messages),
  },
];
