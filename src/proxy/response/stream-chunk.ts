import { JsonCursor } from '../../json/cursor.ts';
import type { EventData } from './sse.ts';
import { readTimings } from './timings.ts';
import { readUsage, type UsageFigures } from './usage.ts';

/** A member of the chunk's top-level object: from its key's opening quote to the end of its value. */
export interface MemberSpan {
  readonly start: number;
  readonly end: number;
}

/** What one event of a stream says, without any of its text. Offsets are into the event's data bytes. */
export interface StreamChunk {
  readonly kind: 'done' | 'object' | 'other';
  /** Carries generated output: content, reasoning, a tool call, a refusal, text. */
  readonly hasOutput: boolean;
  /** What stands between the quotes of the output, where that is one string, or of a string where it is empty. */
  readonly text: MemberSpan | null;
  readonly hasError: boolean;
  /** Whether `choices` is there and empty. */
  readonly hasEmptyChoices: boolean;
  /** Index of the only choice, or null with none or several. */
  readonly choiceIndex: number | null;
  readonly finished: readonly FinishedChoice[];
  readonly usage: UsageFigures | null;
  /** The `usage` member, whatever its value; the last one where there are several. */
  readonly usageMember: MemberSpan | null;
  readonly members: {
    readonly timings: MemberSpan | null;
    readonly systemFingerprint: MemberSpan | null;
    /** llama.cpp's `__verbose`. */
    readonly verbose: MemberSpan | null;
  };
  /** The engine's own numbers, from `timings` or `metrics`. */
  readonly timings: Readonly<Record<string, number>> | null;
  /** A top-level member, other than null, that a plain usage chunk does not have. */
  readonly hasForeignMember: boolean;
  /** Offset of the object's closing brace. */
  readonly closingBrace: number;
}

/** A choice whose last chunk this was. */
export interface FinishedChoice {
  readonly index: number;
  readonly reason: string;
}

const NO_CHUNK: StreamChunk = {
  kind: 'other',
  hasOutput: false,
  text: null,
  hasError: false,
  hasEmptyChoices: false,
  choiceIndex: null,
  finished: [],
  usage: null,
  usageMember: null,
  members: { timings: null, systemFingerprint: null, verbose: null },
  timings: null,
  hasForeignMember: false,
  closingBrace: -1,
};
const DONE: StreamChunk = { ...NO_CHUNK, kind: 'done' };
const DONE_TEXT = '[DONE]';

/** Members of a usage chunk that mean nothing to a client that did not ask for usage. */
const USAGE_CHUNK_MEMBERS = new Set([
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

const cursor = new JsonCursor(Buffer.alloc(0));

/**
 * Reads the JSON of one event. Only top-level keys count: `usage` inside content or tool arguments is text.
 * What is not a JSON object is `other`, never an error: the replica's bytes are relayed whatever they are.
 */
export function readStreamChunk(data: Pick<EventData, 'bytes' | 'start' | 'end'>): StreamChunk {
  const { bytes, start, end } = data;
  if (end - start === DONE_TEXT.length && bytes.toString('latin1', start, end) === DONE_TEXT) return DONE;
  try {
    return readObject(cursor.reset(bytes, start, end));
  } catch {
    return NO_CHUNK;
  }
}

type Draft = { -readonly [K in keyof StreamChunk]: StreamChunk[K] };

function readObject(json: JsonCursor): StreamChunk {
  if (json.peek() !== 'object') return NO_CHUNK;
  const chunk: Draft = { ...NO_CHUNK, kind: 'object' };
  json.beginObject();
  while (json.nextKey()) {
    const memberStart = json.keyStart;
    const key = json.key();
    const isNull = json.peek() === 'null';
    readMember(json, key, chunk);
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

function readMember(json: JsonCursor, key: string, chunk: Draft): void {
  switch (key) {
    case 'choices':
      if (json.peek() === 'array') {
        readChoices(json, chunk);
        return;
      }
      break;
    case 'usage':
      chunk.usage = null;
      if (json.peek() === 'object') {
        chunk.usage = readUsage(json);
        return;
      }
      break;
    case 'timings':
    case 'metrics':
      if (json.peek() === 'object') {
        chunk.timings = readTimings(json);
        return;
      }
      break;
    case 'error':
      if (json.peek() !== 'null') chunk.hasError = true;
      break;
    case 'object':
      // The flat errors of SGLang and older vLLM: {"object":"error","message":…}.
      if (json.peek() === 'string') {
        if (json.readString() === 'error') chunk.hasError = true;
        return;
      }
      break;
  }
  json.skip();
}

function readChoices(json: JsonCursor, chunk: Draft): void {
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
  if (finished.length > 0) chunk.finished = finished;
}

function readChoice(json: JsonCursor, chunk: Draft, finished: FinishedChoice[], count: number): void {
  let index = count - 1;
  let reason: string | null = null;
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    if (key === 'index' && json.peek() === 'number') index = json.readNumber();
    else if (key === 'finish_reason' && json.peek() === 'string') reason = json.readString();
    else if ((key === 'delta' || key === 'message') && json.peek() === 'object') readDelta(json, chunk);
    else if (key === 'text') readOutput(json, chunk);
    else json.skip();
  }
  chunk.choiceIndex = index;
  if (reason !== null) finished.push({ index, reason });
}

function readDelta(json: JsonCursor, chunk: Draft): void {
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

/** Output is any text, list or object that is not empty. */
function readOutput(json: JsonCursor, chunk: Draft): void {
  switch (json.peek()) {
    case 'string':
      json.readStringSpan();
      noteText(json.valueStart, json.valueEnd, chunk);
      return;
    case 'array':
      json.beginArray();
      while (json.nextElement()) {
        noteOutput(chunk);
        json.skip();
      }
      return;
    case 'object':
      json.beginObject();
      while (json.nextKey()) {
        noteOutput(chunk);
        json.skip();
      }
      return;
    default:
      json.skip();
  }
}

function noteText(start: number, end: number, chunk: Draft): void {
  const isEmpty = start === end;
  if (!chunk.hasOutput && (chunk.text === null || !isEmpty)) chunk.text = { start, end };
  else if (!isEmpty) chunk.text = null;
  if (!isEmpty) chunk.hasOutput = true;
}

function noteOutput(chunk: Draft): void {
  chunk.hasOutput = true;
  chunk.text = null;
}
