import { type JsonCursor, type MemberScanner, readMemberOf, type WantedMembers } from '#json';
import { type FailureCode, messageOf } from '../../failure.ts';
import type { CurrentEventData } from '../../response/events/sse.ts';
import { type AnswerFacts, NO_CHUNK, type StreamChunk } from '../../response/events/stream-chunk.ts';
import {
  identityOf,
  readCaptured,
  readEventMembers,
  readIdentityMember,
  readName,
} from './answer-members.ts';
import { type ChunkDraft, noteOutput, readOutput } from './output-members.ts';
import { readTimings, readUsage, type UsageNames } from './usage-members.ts';

/*
 * Answers of OpenAI's responses: a response object, whole or in the first and the last events of a stream (OpenAI API
 * reference, "Streaming events"; captures of llama.cpp and vLLM). An event says its kind in `type`, which may be its
 * last member.
 */

/** What is wanted of a whole answer. */
export const RESPONSE_ANSWER: WantedMembers = {
  members: ['id', 'model', 'status', 'incomplete_details', 'usage', 'timings', 'metrics'],
  list: null,
  itemMembers: [],
};

/** SGLang uses the names of chats where it does not stream (openai/protocol.py, ResponsesResponse). */
const USAGE_NAMES: UsageNames = {
  counts: new Map([
    ['input_tokens', 'promptTokens'],
    ['output_tokens', 'completionTokens'],
    ['prompt_tokens', 'promptTokens'],
    ['completion_tokens', 'completionTokens'],
    ['reasoning_tokens', 'reasoningTokens'],
  ]),
  details: new Set([
    ...['input_tokens_details', 'output_tokens_details'],
    ...['prompt_tokens_details', 'completion_tokens_details'],
  ]),
};

/** The events that end a stream. */
const END_TYPES: ReadonlySet<string | null> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
]);

/** How a response object says that it is not over. */
const OPEN_STATUSES: ReadonlySet<string> = new Set(['queued', 'in_progress']);

/** What a response object says. */
interface ResponseDraft extends Pick<ChunkDraft, 'identity' | 'usage' | 'timings'> {
  status: string | null;
  incompleteReason: string | null;
}

interface EventDraft {
  readonly chunk: ChunkDraft;
  readonly wantsIdentity: boolean;
  readonly response: ResponseDraft;
  type: string | null;
  /** Whether its `item` is a call with a name: of a function, of a tool. */
  isNamedCall: boolean;
}

/** Reads what a scanner has found of a whole answer. The input need not be JSON. */
export function readResponseAnswer({ captured }: MemberScanner, json: JsonCursor): AnswerFacts {
  const response = newResponse();
  for (const key of ['status', 'incomplete_details', 'usage', 'timings', 'metrics'] as const) {
    readCaptured(captured, key, json, () => readResponseMember(json, key, response, false));
  }
  return {
    identity: identityOf(captured, json),
    usage: response.usage,
    timings: response.timings,
    finished: finishedOf(response),
    isOpen: response.status !== null && OPEN_STATUSES.has(response.status),
  };
}

/** Reads one event. Data that is not a JSON object is `other`, never an error. */
export function readResponseEvent(
  data: CurrentEventData,
  json: JsonCursor,
  wantsIdentity: boolean,
): StreamChunk {
  const chunk: ChunkDraft = { ...NO_CHUNK, kind: 'object' };
  const event: EventDraft = { chunk, wantsIdentity, response: newResponse(), type: null, isNamedCall: false };
  if (!readEventMembers(data, json, event, readEventMember)) return NO_CHUNK;
  finish(event);
  return chunk;
}

/** The event that ends a stream which broke off. It has no `sequence_number`: the replica's are not counted. */
export function toResponseErrorEvent(code: FailureCode): string {
  const data = { type: 'error', code, message: messageOf(code), param: null };
  return `event: error\ndata: ${JSON.stringify(data)}\n\n`;
}

function newResponse(): ResponseDraft {
  return { identity: null, usage: null, timings: null, status: null, incompleteReason: null };
}

function readEventMember(json: JsonCursor, key: string, event: EventDraft): void {
  const { chunk, response, wantsIdentity } = event;
  switch (key) {
    case 'type':
      event.type = readName(json);
      return;
    case 'delta':
      readOutput(json, chunk);
      return;
    case 'error':
      if (json.peek() !== 'null') chunk.hasError = true;
      break;
    case 'response':
      if (json.peek() !== 'object') break;
      json.beginObject();
      while (json.nextKey()) readResponseMember(json, json.key(), response, wantsIdentity);
      return;
    case 'item':
      if (json.peek() !== 'object') break;
      event.isNamedCall = readItem(json);
      return;
    case 'timings':
    case 'metrics':
      if (json.peek() !== 'object') break;
      chunk.timings = readTimings(json);
      return;
  }
  json.skip();
}

function readResponseMember(
  json: JsonCursor,
  key: string,
  response: ResponseDraft,
  wantsIdentity: boolean,
): void {
  switch (key) {
    case 'id':
    case 'model':
      if (!wantsIdentity) break;
      readIdentityMember(json, key, response);
      return;
    case 'status':
      response.status = readName(json);
      return;
    case 'incomplete_details':
      response.incompleteReason = readMemberOf(json, 'reason', readName) ?? null;
      return;
    case 'usage':
      response.usage = null;
      if (json.peek() !== 'object') break;
      response.usage = readUsage(json, USAGE_NAMES);
      return;
    case 'timings':
    case 'metrics':
      if (json.peek() !== 'object') break;
      response.timings = readTimings(json);
      return;
  }
  json.skip();
}

/** Whether an item of the output is a call that already has a name. */
function readItem(json: JsonCursor): boolean {
  let hasName = false;
  json.beginObject();
  while (json.nextKey()) {
    if (json.key() === 'name' && json.peek() === 'string') {
      json.readStringSpan();
      hasName = json.valueEnd > json.valueStart;
    } else {
      json.skip();
    }
  }
  return hasName;
}

/** Decides what an event says, once all of it is read. */
function finish({ chunk, response, type, isNamedCall }: EventDraft): void {
  const isDelta = type?.endsWith('.delta') === true;
  if (!isDelta) {
    chunk.hasOutput = false;
    chunk.text = null;
  }
  if (isNamedCall && type === 'response.output_item.added') noteOutput(chunk);
  if (type === 'error' || type === 'response.failed') chunk.hasError = true;
  chunk.identity = response.identity;
  chunk.usage = response.usage;
  // llama.cpp has them beside the response, vLLM in it.
  chunk.timings ??= response.timings;
  if (!END_TYPES.has(type)) return;
  chunk.kind = 'done';
  chunk.finished = finishedOf(response);
}

/**
 * The end of a response is its one finish reason: why it is incomplete, else its status. vLLM sends
 * `response.completed` for an incomplete one too.
 */
function finishedOf({ status, incompleteReason }: ResponseDraft): AnswerFacts['finished'] {
  const reason = incompleteReason ?? status;
  return reason === null || OPEN_STATUSES.has(reason) ? [] : [{ index: 0, reason }];
}
