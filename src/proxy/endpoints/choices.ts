import type { JsonCursor, MemberScanner, WantedMembers } from '#json';
import { type FailureCode, toFailureJson } from '../failure.ts';
import type { CurrentEventData } from '../response/events/sse.ts';
import {
  type AnswerFacts,
  type FinishedChoice,
  NO_CHUNK,
  type StreamChunk,
} from '../response/events/stream-chunk.ts';
import { identityOf, readCaptured, readIdentityMember } from './answers/answer-members.ts';
import { type ChunkDraft, readOutput } from './answers/output-members.ts';
import { readTimings, readUsage, type UsageNames } from './answers/usage-members.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/*
 * Answers in the style of OpenAI's completions: an object with `choices` and `usage`, whole or in the events of a
 * stream. Both forms are read by the same rules: of duplicate members the last one counts.
 */

const DONE: StreamChunk = { ...NO_CHUNK, kind: 'done' };
const DONE_TEXT = '[DONE]';

/** Members of a usage chunk that mean nothing to a client that did not ask for usage. */
const USAGE_CHUNK_MEMBERS: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'system_fingerprint',
  'service_tier',
  'obfuscation',
  'timings',
  'metrics',
]);

/** Every spelling that engines are known to use. */
const USAGE_NAMES: UsageNames = {
  counts: new Map([
    ['prompt_tokens', 'promptTokens'],
    ['completion_tokens', 'completionTokens'],
    ['reasoning_tokens', 'reasoningTokens'],
    // DeepSeek's spelling, Moonshot's, and those that proxies copy from Anthropic's API.
    ['prompt_cache_hit_tokens', 'cachedTokens'],
    ['cached_tokens', 'cachedTokens'],
    ['cache_read_input_tokens', 'cachedTokens'],
    ['cache_creation_input_tokens', 'cacheCreationTokens'],
  ]),
  details: new Set([
    'prompt_tokens_details',
    'input_tokens_details',
    'completion_tokens_details',
    'output_tokens_details',
  ]),
};

/** What is wanted of a whole answer. */
const CHOICES_ANSWER: WantedMembers = {
  members: ['id', 'model', 'usage', 'timings', 'metrics'],
  list: 'choices',
  itemMembers: ['index', 'finish_reason'],
};

/** What endpoints of this style have in common. */
export const CHOICES_ENDPOINT = {
  needsModel: true,
  isForm: false,
  keepsResponses: false,
  maxTokensMembers: ['max_completion_tokens', 'max_tokens'],
  readEvent: readChoicesEvent,
  usageInStream: 'last',
  needsEndMark: false,
  wantedOfAnswer: CHOICES_ANSWER,
  readAnswer: readChoicesAnswer,
  toErrorBody: toFailureJson,
  toErrorEvent: toChoicesErrorEvent,
} as const satisfies Partial<RecordedEndpoint>;

type AnswerDraft = { -readonly [K in keyof AnswerFacts]: AnswerFacts[K] };

/** Reads what a scanner has found of a whole answer. The input need not be JSON. */
export function readChoicesAnswer({ captured, items }: MemberScanner, json: JsonCursor): AnswerFacts {
  const finished: FinishedChoice[] = [];
  for (const { position, values } of items) {
    const [index, reason] = values;
    if (typeof reason === 'string')
      finished.push({ index: typeof index === 'number' ? index : position, reason });
  }
  const facts: AnswerDraft = { identity: identityOf(captured, json), usage: null, timings: null, finished };
  for (const key of captured.keys()) {
    if (key === 'id' || key === 'model') continue;
    readCaptured(captured, key, json, () => readFigures(json, key, facts));
  }
  return facts;
}

/**
 * Reads the JSON of one event. Only top-level keys count: `usage` inside content or tool arguments is text. Data that
 * is not a JSON object is `other`, never an error: the replica's bytes are relayed whatever they are.
 */
export function readChoicesEvent(
  { bytes, start, end }: CurrentEventData,
  json: JsonCursor,
  wantsIdentity: boolean,
): StreamChunk {
  if (end - start === DONE_TEXT.length && bytes.toString('latin1', start, end) === DONE_TEXT) return DONE;
  try {
    return readObject(json.reset(bytes, start, end), wantsIdentity);
  } catch {
    return NO_CHUNK;
  }
}

/** The event that ends a stream which broke off. */
export function toChoicesErrorEvent(code: FailureCode): string {
  return `data: ${toFailureJson(code)}\n\n`;
}

function readObject(json: JsonCursor, wantsIdentity: boolean): StreamChunk {
  if (json.peek() !== 'object') return NO_CHUNK;
  const chunk: ChunkDraft = { ...NO_CHUNK, kind: 'object' };
  json.beginObject();
  while (json.nextKey()) {
    const memberStart = json.keyStart;
    const key = json.key();
    const isNull = json.peek() === 'null';
    if (wantsIdentity && (key === 'id' || key === 'model')) readIdentityMember(json, key, chunk);
    else readMember(json, key, chunk);
    const span = { start: memberStart, end: json.position };
    if (key === 'usage') chunk.usageMember = span;
    else if (key === 'timings') chunk.members = { ...chunk.members, timings: span };
    else if (key === 'system_fingerprint') chunk.members = { ...chunk.members, systemFingerprint: span };
    else if (!isNull && !USAGE_CHUNK_MEMBERS.has(key)) {
      chunk.hasForeignMember = true;
      if (key === '__verbose') chunk.members = { ...chunk.members, verbose: span };
    }
  }
  chunk.closingBrace = json.position - 1;
  json.end();
  return chunk;
}

function readMember(json: JsonCursor, key: string, chunk: ChunkDraft): void {
  switch (key) {
    case 'choices':
      if (json.peek() !== 'array') break;
      readChoices(json, chunk);
      return;
    case 'usage':
    case 'timings':
    case 'metrics':
      readFigures(json, key, chunk);
      return;
    case 'error':
      if (json.peek() !== 'null') chunk.hasError = true;
      break;
    case 'object':
      // The flat errors of SGLang and older vLLM: {"object":"error","message":…}.
      if (json.peek() !== 'string') break;
      if (json.readString() === 'error') chunk.hasError = true;
      return;
  }
  json.skip();
}

/** Reads the value of `usage`, `timings` or `metrics`. A value that is not an object replaces earlier figures too. */
function readFigures(json: JsonCursor, key: string, facts: AnswerDraft): void {
  const isObject = json.peek() === 'object';
  if (key === 'usage') facts.usage = null;
  else facts.timings = null;
  if (!isObject) json.skip();
  else if (key === 'usage') facts.usage = readUsage(json, USAGE_NAMES);
  else facts.timings = readTimings(json);
}

function readChoices(json: JsonCursor, chunk: ChunkDraft): void {
  let count = 0;
  const finished: FinishedChoice[] = [];
  json.beginArray();
  while (json.nextElement()) {
    count++;
    if (json.peek() === 'object') readChoice(json, chunk, finished, count);
    else json.skip();
  }
  chunk.hasEmptyChoices = count === 0;
  if (count !== 1) chunk.choiceIndex = null;
  chunk.finished = finished;
}

/** A choice whose `index` is not a number has the index of its position in the list. */
function readChoice(json: JsonCursor, chunk: ChunkDraft, finished: FinishedChoice[], count: number): void {
  const position = count - 1;
  let index = position;
  let reason: string | null = null;
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    if (key === 'index') index = readIndex(json) ?? position;
    else if (key === 'finish_reason') reason = readReason(json);
    else if ((key === 'delta' || key === 'message') && json.peek() === 'object') readDelta(json, chunk);
    else if (key === 'text') readOutput(json, chunk);
    else json.skip();
  }
  chunk.choiceIndex = index;
  if (reason !== null) finished.push({ index, reason });
}

function readIndex(json: JsonCursor): number | null {
  if (json.peek() === 'number') return json.readNumber();
  json.skip();
  return null;
}

function readReason(json: JsonCursor): string | null {
  if (json.peek() === 'string') return json.readString();
  json.skip();
  return null;
}

function readDelta(json: JsonCursor, chunk: ChunkDraft): void {
  json.beginObject();
  while (json.nextKey()) {
    switch (json.key()) {
      case 'content':
      case 'reasoning':
      case 'reasoning_content':
      case 'refusal':
      case 'tool_calls':
      case 'function_call':
      case 'audio':
        readOutput(json, chunk);
        break;
      default:
        json.skip();
    }
  }
}
