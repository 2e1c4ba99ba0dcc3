import type { JsonCursor, Span } from '#json';
import { type Members, readMembers, type TextReader } from '../request/inspection/text-reader.ts';
import { CHOICES_ENDPOINT } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';
import { LINE_FEED, NOTHING, RECORD_SEPARATOR } from './text-marks.ts';
import { LEAVE_ALL, undoRulesFor } from './undo-rules.ts';

const UNDO_RULES = { llamacpp: { ...LEAVE_ALL, movedMember: 'timings' }, ollama: LEAVE_ALL } as const;

/** Chat completions: `messages` is a list of roles with text, media and tool calls. */
export const CHAT_COMPLETIONS: RecordedEndpoint = {
  ...CHOICES_ENDPOINT,
  path: '/v1/chat/completions',
  textMembers: ['messages'],
  readText: (reader, [messages]) => readMessages(reader, messages),
  undoRules: (engine, continuousUsageStats) => undoRulesFor(engine, continuousUsageStats, UNDO_RULES),
};

const MESSAGE_MEMBERS = ['role', 'content', 'tool_calls'];

/** Where a part that is not text may hold its payload. The first of these that is a string counts. */
const PAYLOADS: readonly (readonly [member: string, inner: string | undefined])[] = [
  ['image_url', 'url'],
  ['image_url', undefined],
  ['video_url', 'url'],
  ['audio_url', 'url'],
  ['input_audio', 'data'],
  ['file', 'file_data'],
  ['file', 'file_id'],
];
const PART_MEMBERS: ReadonlySet<string> = new Set(['text', ...PAYLOADS.map(([member]) => member)]);

/** Levels of nesting, each of which has a cursor of its own. */
const MESSAGES = 0;
const PARTS = 1;
const PART = 2;

/** Reads a list of messages as the text of a chat. Returns false if it is absent or not a list. */
export function readMessages(reader: TextReader, messages: Span | undefined): boolean {
  return reader.readList(MESSAGES, messages, (cursor) => readMessage(reader, cursor));
}

/** Reads a message. A value that is not an object counts as a message without members. */
function readMessage(reader: TextReader, cursor: JsonCursor): void {
  let role: Span | undefined;
  let content: Span | undefined;
  let toolCalls: Span | undefined;
  if (cursor.peek() === 'object') {
    cursor.beginObject();
    while (cursor.nextKey()) {
      const key = cursor.key();
      cursor.skip();
      const value = { start: cursor.valueStart, end: cursor.valueEnd };
      switch (key) {
        case 'role':
          reader.names.noteRead(key, role !== undefined);
          role = value;
          break;
        case 'content':
          reader.names.noteRead(key, content !== undefined);
          content = value;
          break;
        case 'tool_calls':
          reader.names.noteRead(key, toolCalls !== undefined);
          toolCalls = value;
          break;
        default:
          reader.names.noteUnread(key, MESSAGE_MEMBERS);
      }
    }
  } else {
    cursor.skip();
  }
  reader.hash(RECORD_SEPARATOR);
  reader.hash(reader.stringAt(role) ?? NOTHING);
  reader.hash(LINE_FEED);
  reader.readContent(PARTS, content, PART_MEMBERS, (members) => readPart(reader, members));
  if (toolCalls !== undefined) reader.hash(reader.bytesAt(toolCalls));
  reader.hash(LINE_FEED);
}

/** A part with a `text` that is a string is text. Any other part is a medium. */
function readPart(reader: TextReader, members: Members): void {
  const text = reader.stringAt(members.get('text'));
  if (text !== undefined) reader.addText(text);
  else if (!reader.isFull) reader.hashMedium(payloadOf(reader, members));
}

function payloadOf(reader: TextReader, members: Members): Buffer {
  for (const [member, inner] of PAYLOADS) {
    const span = members.get(member);
    if (span === undefined) continue;
    const payload = reader.stringAt(inner === undefined ? span : memberAt(reader, span, inner));
    if (payload !== undefined) return payload;
  }
  return NOTHING;
}

function memberAt(reader: TextReader, object: Span, key: string): Span | undefined {
  return readMembers(reader.cursorAt(PART, object), new Set([key]), reader.names).get(key);
}
