import { CHOICES_ENDPOINT } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/** Embeddings: `input` is a string, a list of strings, or token ids. Engines do not stream them. */
export const EMBEDDINGS: RecordedEndpoint = {
  ...CHOICES_ENDPOINT,
  path: '/v1/embeddings',
  textMembers: ['input'],
  readText: (reader, [input]) => reader.addStrings(input),
  undoRules: null,
};
