import type { JsonCursor, MemberScanner, WantedMembers } from '#json';
import type { CurrentEventData } from '../../response/events/sse.ts';
import type { AnswerFacts, StreamChunk } from '../../response/events/stream-chunk.ts';
import type { UsageFigures } from '../../response/usage-tally.ts';
import { readChoicesEvent } from '../choices.ts';
import { identityOf, readCaptured, readName } from './answer-members.ts';
import { type ChunkDraft, readOutput } from './output-members.ts';
import { readUsage, type UsageNames } from './usage-members.ts';

/*
 * Answers of OpenAI's transcriptions. A whole one has `text` and `usage`, in seconds or in tokens; the verbose one of
 * vLLM has `duration` instead, as a string. A stream has typed events (OpenAI API reference, `transcript.text.delta`
 * and `.done`), or chunks with `choices` (vLLM and SGLang).
 */

/** What is wanted of a whole answer. */
export const TRANSCRIPTION_ANSWER: WantedMembers = {
  members: ['id', 'model', 'usage', 'duration'],
  list: null,
  itemMembers: [],
};

const USAGE_NAMES: UsageNames = {
  counts: new Map([
    ['input_tokens', 'promptTokens'],
    ['prompt_tokens', 'promptTokens'],
    ['output_tokens', 'completionTokens'],
    ['completion_tokens', 'completionTokens'],
    ['seconds', 'audioSeconds'],
  ]),
  details: new Set(['input_token_details', 'prompt_tokens_details', 'completion_tokens_details']),
};

/** Reads what a scanner has found of a whole answer. The input need not be JSON. */
export function readTranscription({ captured }: MemberScanner, json: JsonCursor): AnswerFacts {
  let usage: UsageFigures = {};
  readCaptured(captured, 'usage', json, () => {
    if (json.peek() === 'object') usage = readUsage(json, USAGE_NAMES);
  });
  if (usage.audioSeconds === undefined) {
    readCaptured(captured, 'duration', json, () => {
      const seconds = readSeconds(json);
      if (seconds !== null) usage.audioSeconds = seconds;
    });
  }
  return { identity: identityOf(captured, json), usage, timings: null, finished: [] };
}

/** Reads one event. Data that is not a JSON object is `other`, never an error. */
export function readTranscriptionEvent(
  data: CurrentEventData,
  json: JsonCursor,
  wantsIdentity: boolean,
): StreamChunk {
  const chunk = readChoicesEvent(data, json, wantsIdentity);
  const hasChoices = chunk.hasEmptyChoices || chunk.choiceIndex !== null;
  if (chunk.kind !== 'object' || hasChoices) return chunk;
  const { bytes, start, end } = data;
  return readTypedEvent(json.reset(bytes, start, end), { ...chunk, usage: null });
}

/** Reads an event that says its kind in `type`, which may be its last member. It is a JSON object. */
function readTypedEvent(json: JsonCursor, chunk: ChunkDraft): StreamChunk {
  let type: string | null = null;
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    if (key === 'type') type = readName(json);
    else if (key === 'delta') readOutput(json, chunk);
    else if (key === 'usage' && json.peek() === 'object') chunk.usage = readUsage(json, USAGE_NAMES);
    else json.skip();
  }
  if (type !== 'transcript.text.delta') {
    chunk.hasOutput = false;
    chunk.text = null;
  }
  if (type === 'error') chunk.hasError = true;
  if (type === 'transcript.text.done') chunk.kind = 'done';
  return chunk;
}

const SECONDS = /^\d{1,9}(?:\.\d{1,9})?$/;

/** A length in seconds: a number, or a string that holds one (vLLM). */
function readSeconds(json: JsonCursor): number | null {
  if (json.peek() === 'number') {
    const seconds = json.readNumber();
    return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
  }
  const text = readName(json);
  return text !== null && SECONDS.test(text) ? Number(text) : null;
}
