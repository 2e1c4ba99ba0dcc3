import { type JsonCursor, type MemberScanner, readCount, readMemberOf, type WantedMembers } from '#json';
import { toFailureJson } from '../../failure.ts';
import type { AnswerFacts } from '../../response/events/stream-chunk.ts';
import type { UsageFigures } from '../../response/usage-tally.ts';
import { identityOf, readCaptured } from '../answers/answer-members.ts';
import { readUsage, type UsageNames } from '../answers/usage-members.ts';
import { readChoicesEvent, toChoicesErrorEvent } from '../choices.ts';
import type { RecordedEndpoint } from '../recorded-endpoint.ts';

/** What a whole answer without choices may say of itself. */
const WHOLE_ANSWER: WantedMembers = {
  members: ['id', 'model', 'usage', 'meta'],
  list: null,
  itemMembers: [],
};

const USAGE_NAMES: UsageNames = {
  counts: new Map([
    ['prompt_tokens', 'promptTokens'],
    ['input_tokens', 'promptTokens'],
    ['completion_tokens', 'completionTokens'],
  ]),
  details: new Set(['prompt_tokens_details', 'input_tokens_details']),
};

/** Where else the tokens of the request may be. The first place that holds a count applies. */
const PROMPT_TOKENS: readonly (readonly [member: string, ...path: string[]])[] = [
  // Nothing is generated, so the total is the prompt's: vLLM until 0.10, Jina, Voyage.
  ['usage', 'total_tokens'],
  // Cohere's API, version 2. Its `search_units` are no tokens.
  ['meta', 'tokens', 'input_tokens'],
  ['meta', 'billed_units', 'input_tokens'],
];

/** What the endpoints have in common that answer in one piece and generate no text. No engine streams them. */
export const WHOLE_ANSWER_ENDPOINT = {
  needsModel: false,
  isForm: false,
  keepsResponses: false,
  maxTokensMembers: [],
  undoRules: null,
  readEvent: readChoicesEvent,
  usageInStream: 'last',
  needsEndMark: false,
  wantedOfAnswer: WHOLE_ANSWER,
  readAnswer: readWholeAnswer,
  toErrorBody: toFailureJson,
  toErrorEvent: toChoicesErrorEvent,
} as const satisfies Omit<RecordedEndpoint, 'path' | 'textMembers' | 'readText'>;

function readWholeAnswer({ captured }: MemberScanner, json: JsonCursor): AnswerFacts {
  let usage: UsageFigures = {};
  readCaptured(captured, 'usage', json, () => {
    if (json.peek() === 'object') usage = readUsage(json, USAGE_NAMES);
  });
  for (const [member, ...path] of PROMPT_TOKENS) {
    if (usage.promptTokens !== undefined) break;
    readCaptured(captured, member, json, () => {
      const count = readCountAt(json, path);
      if (count !== undefined) usage.promptTokens = count;
    });
  }
  return { identity: identityOf(captured, json), usage, timings: null, finished: [] };
}

/** The count under these keys of the cursor's next value. Of duplicate members the last one counts. */
function readCountAt(json: JsonCursor, [key, ...path]: readonly string[]): number | undefined {
  if (key === undefined) return readCount(json);
  return readMemberOf(json, key, (value) => readCountAt(value, path));
}
