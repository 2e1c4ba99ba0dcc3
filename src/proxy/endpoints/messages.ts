import type { JsonCursor, Span } from '#json';
import { type Members, readMembers, type TextReader } from '../request/inspection/text-reader.ts';
import { MESSAGE_ANSWER, readMessageAnswer, readMessageEvent } from './answers/message-answers.ts';
import { toMessageErrorBody, toMessageErrorEvent } from './answers/message-errors.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { LINE_FEED, NOTHING, RECORD_SEPARATOR, SYSTEM } from './text-marks.ts';

/** Anthropic's messages: `system`, and `messages` with content blocks. */
export const MESSAGES: RecordedEndpoint = {
  path: '/v1/messages',
  needsModel: true,
  isForm: false,
  keepsResponses: false,
  textMembers: ['system', 'messages'],
  readText: readConversation,
  maxTokensMembers: ['max_tokens'],
  undoRules: null,
  readEvent: readMessageEvent,
  usageInStream: 'in_parts',
  needsEndMark: true,
  wantedOfAnswer: MESSAGE_ANSWER,
  readAnswer: readMessageAnswer,
  toErrorBody: toMessageErrorBody,
  toErrorEvent: toMessageErrorEvent,
};

/**
 * Counts the tokens that a message would have. It is recorded, because it occupies a replica like every request. The
 * count is no usage: recorded as tokens, or with its text hashed, the prompt would count twice.
 */
export const COUNT_TOKENS: RecordedEndpoint = {
  ...MESSAGES,
  path: '/v1/messages/count_tokens',
  needsModel: true,
  isForm: false,
  keepsResponses: false,
  textMembers: [],
  readText: () => false,
  maxTokensMembers: [],
  wantedOfAnswer: { members: [], list: null, itemMembers: [] },
};

const MESSAGE_MEMBERS: ReadonlySet<string> = new Set(['role', 'content']);
const SOURCE_MEMBERS: ReadonlySet<string> = new Set(['data', 'url', 'file_id']);
/** What is hashed of a block that is neither text nor a medium nor a result, in this order. */
const CALL_MEMBERS = ['name', 'input', 'thinking', 'data'] as const;
const BLOCK_MEMBERS: ReadonlySet<string> = new Set(['text', 'source', 'content', ...CALL_MEMBERS]);

/** Levels of nesting, each of which has a cursor of its own. */
const MESSAGE_LIST = 0;
const BLOCKS = 1;
const BLOCKS_OF_RESULT = 2;
const SOURCE = 3;

function readConversation(reader: TextReader, [system, messages]: readonly (Span | undefined)[]): boolean {
  if (system !== undefined && reader.cursorAt(MESSAGE_LIST, system).peek() !== 'null') {
    reader.hash(RECORD_SEPARATOR);
    reader.hash(SYSTEM);
    reader.hash(LINE_FEED);
    readContent(reader, system, BLOCKS);
    reader.hash(LINE_FEED);
  }
  return reader.readList(MESSAGE_LIST, messages, (cursor) => readMessage(reader, cursor));
}

/** Reads a message. A value that is not an object counts as a message without members. */
function readMessage(reader: TextReader, cursor: JsonCursor): void {
  const members = readMembers(cursor, MESSAGE_MEMBERS, reader.names);
  reader.hash(RECORD_SEPARATOR);
  reader.hash(reader.stringAt(members.get('role')) ?? NOTHING);
  reader.hash(LINE_FEED);
  readContent(reader, members.get('content'), BLOCKS);
  reader.hash(LINE_FEED);
}

/** Reads a string or a list of blocks; anything else has no text. */
function readContent(reader: TextReader, content: Span | undefined, level: number): void {
  reader.readContent(level, content, BLOCK_MEMBERS, (members) => readBlock(reader, members, level));
}

/**
 * Reads a block: a text, a medium, the result of a tool, or a call or thought, which is hashed and not counted.
 * `cache_control` is not hashed: clients move it from turn to turn.
 */
function readBlock(reader: TextReader, members: Members, level: number): void {
  const text = reader.stringAt(members.get('text'));
  const source = members.get('source');
  const content = members.get('content');
  if (text !== undefined) {
    reader.addText(text);
  } else if (source !== undefined) {
    if (!reader.isFull) reader.hashMedium(payloadOf(reader, source));
  } else if (content !== undefined && level === BLOCKS) {
    readContent(reader, content, BLOCKS_OF_RESULT);
  } else {
    for (const member of CALL_MEMBERS) {
      const span = members.get(member);
      if (span !== undefined) reader.hash(reader.bytesAt(span));
    }
  }
}

/** The payload of a medium: the first of `data`, `url`, `file_id` that is a string; else it is empty. */
function payloadOf(reader: TextReader, source: Span): Buffer {
  const members = readMembers(reader.cursorAt(SOURCE, source), SOURCE_MEMBERS, reader.names);
  for (const member of SOURCE_MEMBERS) {
    const payload = reader.stringAt(members.get(member));
    if (payload !== undefined) return payload;
  }
  return NOTHING;
}
