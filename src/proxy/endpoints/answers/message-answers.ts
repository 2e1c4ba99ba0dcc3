import type { JsonCursor, MemberScanner, WantedMembers } from '#json';
import type { CurrentEventData } from '../../response/events/sse.ts';
import { type AnswerFacts, NO_CHUNK, type StreamChunk } from '../../response/events/stream-chunk.ts';
import { isPlaceholder } from '../../response/usage-tally.ts';
import {
  identityOf,
  readCaptured,
  readEventMembers,
  readIdentityMember,
  readName,
} from './answer-members.ts';
import { type ChunkDraft, readOutput } from './output-members.ts';
import { readTimings, readUsage, type UsageNames } from './usage-members.ts';

/*
 * Answers of Anthropic's messages: a message object, whole or in `message_start`; then deltas of its content, and its
 * stop reason and cumulative usage in `message_delta` (Anthropic API reference, "Streaming messages"; captures of
 * llama.cpp and vLLM). An event says its kind in `type`, which may be its last member.
 */

/** What is wanted of a whole answer. */
export const MESSAGE_ANSWER: WantedMembers = {
  members: ['id', 'model', 'stop_reason', 'usage', 'timings', 'metrics'],
  list: null,
  itemMembers: [],
};

const USAGE_NAMES: UsageNames = {
  counts: new Map([
    ['input_tokens', 'uncachedTokens'],
    ['output_tokens', 'completionTokens'],
    ['cache_read_input_tokens', 'cachedTokens'],
    ['cache_creation_input_tokens', 'cacheCreationTokens'],
  ]),
  details: new Set(),
};

/** The members of a content block, or of its delta, that hold output; of a tool's call the name. */
const OUTPUT_MEMBERS: ReadonlySet<string> = new Set(['text', 'thinking', 'partial_json', 'data', 'name']);

interface EventDraft {
  readonly chunk: ChunkDraft;
  readonly wantsIdentity: boolean;
  type: string | null;
  stopReason: string | null;
}

/** Reads what a scanner has found of a whole answer. The input need not be JSON. */
export function readMessageAnswer({ captured }: MemberScanner, json: JsonCursor): AnswerFacts {
  let usage: AnswerFacts['usage'] = null;
  let timings: AnswerFacts['timings'] = null;
  let stopReason: string | null = null;
  readCaptured(captured, 'usage', json, () => {
    if (json.peek() === 'object') usage = readUsage(json, USAGE_NAMES);
  });
  for (const key of ['timings', 'metrics']) {
    readCaptured(captured, key, json, () => {
      if (json.peek() === 'object') timings = readTimings(json);
    });
  }
  readCaptured(captured, 'stop_reason', json, () => {
    stopReason = readName(json);
  });
  return { identity: identityOf(captured, json), usage, timings, finished: finishedOf(stopReason) };
}

/** Reads one event. Data that is not a JSON object is `other`, never an error. */
export function readMessageEvent(
  data: CurrentEventData,
  json: JsonCursor,
  wantsIdentity: boolean,
): StreamChunk {
  const chunk: ChunkDraft = { ...NO_CHUNK, kind: 'object' };
  const event: EventDraft = { chunk, wantsIdentity, type: null, stopReason: null };
  if (!readEventMembers(data, json, event, readEventMember)) return NO_CHUNK;
  finish(event);
  return chunk;
}

function readEventMember(json: JsonCursor, key: string, event: EventDraft): void {
  const { chunk, wantsIdentity } = event;
  switch (key) {
    case 'type':
      event.type = readName(json);
      return;
    case 'message':
      if (json.peek() !== 'object') break;
      readMessage(json, chunk, wantsIdentity);
      return;
    case 'delta':
    case 'content_block':
      if (json.peek() !== 'object') break;
      readContent(json, event);
      return;
    case 'usage':
    case 'timings':
    case 'metrics':
      readFigures(json, key, chunk);
      return;
    case 'error':
      if (json.peek() !== 'null') chunk.hasError = true;
      break;
  }
  json.skip();
}

/**
 * Reads the message of `message_start`. Its `output_tokens` counts nothing of the answer. Zeros for the prompt mean that
 * the engine does not know yet.
 */
function readMessage(json: JsonCursor, chunk: ChunkDraft, wantsIdentity: boolean): void {
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    if (wantsIdentity && (key === 'id' || key === 'model')) readIdentityMember(json, key, chunk);
    else if (key === 'usage') readFigures(json, key, chunk);
    else json.skip();
  }
  if (chunk.usage === null) return;
  const { completionTokens, ...ofPrompt } = chunk.usage;
  chunk.usage = isPlaceholder(ofPrompt) ? null : ofPrompt;
}

function readContent(json: JsonCursor, event: EventDraft): void {
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    if (OUTPUT_MEMBERS.has(key)) readOutput(json, event.chunk);
    else if (key === 'stop_reason') event.stopReason = readName(json);
    else json.skip();
  }
}

function readFigures(json: JsonCursor, key: 'usage' | 'timings' | 'metrics', chunk: ChunkDraft): void {
  const isObject = json.peek() === 'object';
  if (key === 'usage') chunk.usage = isObject ? readUsage(json, USAGE_NAMES) : null;
  else chunk.timings = isObject ? readTimings(json) : null;
  if (!isObject) json.skip();
}

/** Decides what an event says, once all of it is read. */
function finish({ chunk, type, stopReason }: EventDraft): void {
  if (type !== 'content_block_start' && type !== 'content_block_delta') {
    chunk.hasOutput = false;
    chunk.text = null;
  }
  if (type === 'error') chunk.hasError = true;
  if (type === 'message_delta') chunk.finished = finishedOf(stopReason);
  if (type === 'message_stop') chunk.kind = 'done';
}

function finishedOf(stopReason: string | null): AnswerFacts['finished'] {
  return stopReason === null ? [] : [{ index: 0, reason: stopReason }];
}
