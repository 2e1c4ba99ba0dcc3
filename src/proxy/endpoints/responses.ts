import type { JsonCursor, Span } from '#json';
import { toFailureJson } from '../failure.ts';
import { type Members, readMembers, type TextReader } from '../request/inspection/text-reader.ts';
import {
  RESPONSE_ANSWER,
  readResponseAnswer,
  readResponseEvent,
  toResponseErrorEvent,
} from './answers/response-answers.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { LINE_FEED, NOTHING, RECORD_SEPARATOR, SYSTEM, USER } from './text-marks.ts';

/** OpenAI's responses: `instructions` and `input`, a string or a list of messages, calls and their outputs. */
export const RESPONSES: RecordedEndpoint = {
  path: '/v1/responses',
  needsModel: true,
  isForm: false,
  keepsResponses: true,
  textMembers: ['instructions', 'input'],
  readText: readInput,
  maxTokensMembers: ['max_output_tokens'],
  undoRules: null,
  readEvent: readResponseEvent,
  usageInStream: 'in_parts',
  needsEndMark: true,
  wantedOfAnswer: RESPONSE_ANSWER,
  readAnswer: readResponseAnswer,
  toErrorBody: toFailureJson,
  toErrorEvent: toResponseErrorEvent,
};

/**
 * The requests about a response that an engine keeps, by its id (OpenAI API reference, "Responses"; vLLM has all but
 * DELETE and `input_items`).
 */
const STORED_RESPONSE = /^\/v1\/responses\/([A-Za-z0-9_-]{1,256})(\/cancel|\/input_items)?$/;
const METHODS: Readonly<Record<string, readonly string[]>> = {
  '': ['GET', 'DELETE'],
  '/cancel': ['POST'],
  '/input_items': ['GET'],
};

/** The id in a request about a response that an engine keeps; null: the method and path, without query, are another's. */
export function storedResponseIdIn(method: string, path: string): string | null {
  const [, id, rest = ''] = STORED_RESPONSE.exec(path) ?? [];
  return id !== undefined && METHODS[rest]?.includes(method) === true ? id : null;
}

/** At any case, and behind any prefix: some servers read them as the same path. */
const OF_RESPONSES = /\/v1\/responses(?:\/|$)/i;

/** Whether a path, without query, is the one of responses or lies below it, and may thus be about anyone's response. */
export function isOfResponses(path: string): boolean {
  return OF_RESPONSES.test(path);
}

const ITEM_MEMBERS: ReadonlySet<string> = new Set(['type', 'role', 'content', 'output']);

/** Where a part that is not text may hold its payload. The first of these that is a string counts. */
const PAYLOADS = ['image_url', 'file_data', 'file_url', 'file_id'] as const;
const PART_MEMBERS: ReadonlySet<string> = new Set(['text', 'refusal', 'input_audio', ...PAYLOADS]);
const AUDIO_MEMBERS: ReadonlySet<string> = new Set(['data']);

/** Levels of nesting, each of which has a cursor of its own. */
const ITEMS = 0;
const PARTS = 1;
const AUDIO = 2;

/** Instructions are a message of the system before the input, and an input that is a string is one of the user. */
function readInput(reader: TextReader, [instructions, input]: readonly (Span | undefined)[]): boolean {
  const system = reader.stringAt(instructions);
  if (system !== undefined) readStringMessage(reader, SYSTEM, system);
  const prompt = reader.stringAt(input);
  if (prompt !== undefined) {
    readStringMessage(reader, USER, prompt);
    return true;
  }
  return reader.readList(ITEMS, input, (cursor) => readItem(reader, cursor));
}

function readStringMessage(reader: TextReader, role: Buffer, text: Buffer): void {
  reader.hash(RECORD_SEPARATOR);
  reader.hash(role);
  reader.hash(LINE_FEED);
  reader.addText(text);
  reader.hash(LINE_FEED);
}

/**
 * Reads an item: a message if it has a role, else a call, its output, or whatever else. What is neither a message nor
 * an output with text is hashed as it was sent, as the tool calls of a chat are.
 */
function readItem(reader: TextReader, cursor: JsonCursor): void {
  const isObject = cursor.peek() === 'object';
  const start = cursor.position;
  const members = readMembers(cursor, ITEM_MEMBERS, reader.names);
  const item = { start, end: cursor.valueEnd };
  const role = reader.stringAt(members.get('role'));
  reader.hash(RECORD_SEPARATOR);
  reader.hash(role ?? reader.stringAt(members.get('type')) ?? NOTHING);
  reader.hash(LINE_FEED);
  const content = members.get(role === undefined ? 'output' : 'content');
  const wasRead = reader.readContent(PARTS, content, PART_MEMBERS, (part) => readPart(reader, part));
  if (!wasRead && role === undefined && isObject) reader.hash(reader.bytesAt(item));
  reader.hash(LINE_FEED);
}

/** A part whose `text` or `refusal` is a string is text. Any other part is a medium. */
function readPart(reader: TextReader, members: Members): void {
  const text = reader.stringAt(members.get('text')) ?? reader.stringAt(members.get('refusal'));
  if (text !== undefined) reader.addText(text);
  else if (!reader.isFull) reader.hashMedium(payloadOf(reader, members));
}

function payloadOf(reader: TextReader, members: Members): Buffer {
  for (const member of PAYLOADS) {
    const payload = reader.stringAt(members.get(member));
    if (payload !== undefined) return payload;
  }
  const audio = members.get('input_audio');
  if (audio === undefined) return NOTHING;
  const inner = readMembers(reader.cursorAt(AUDIO, audio), AUDIO_MEMBERS, reader.names);
  return reader.stringAt(inner.get('data')) ?? NOTHING;
}
