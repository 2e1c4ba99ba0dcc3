import { readMessages } from '../chat-completions.ts';
import type { RecordedEndpoint } from '../recorded-endpoint.ts';
import { WHOLE_ANSWER_ENDPOINT } from './whole-answer.ts';

/** vLLM, llama.cpp, TGI and text-embeddings-inference have the first, SGLang both. `/detokenize` is the same, without the last two. */
const PATHS = ['/tokenize', '/v1/tokenize'];

/**
 * The tokens of a text: `prompt` of vLLM and SGLang, `content` of llama.cpp, `inputs` of TGI and
 * text-embeddings-inference, or a chat (vLLM). The model computes nothing, so there are no hashes and no usage: the
 * `count` in the answer is the result, not the cost.
 */
export const TOKENIZE: readonly RecordedEndpoint[] = PATHS.map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: ['prompt', 'content', 'inputs', 'messages'],
  readText(reader, [prompt, content, inputs, messages]) {
    reader.countOnly();
    return messages === undefined
      ? reader.addStrings(prompt ?? content ?? inputs)
      : readMessages(reader, messages);
  },
}));

/** The text of `tokens`. The request has no text, and the model computes nothing: no hashes, no usage. */
export const DETOKENIZE: readonly RecordedEndpoint[] = ['/detokenize', '/v1/detokenize'].map((path) => ({
  ...WHOLE_ANSWER_ENDPOINT,
  path,
  textMembers: [],
  readText: () => false,
}));
