import type { JsonCursor, Span } from '#json';
import { readMembers, type TextReader } from '../../request/inspection/text-reader.ts';

const ITEM_MEMBERS: ReadonlySet<string> = new Set(['text', 'content', 'type']);

/** Levels of nesting, each of which has a cursor of its own. */
const ITEMS = 0;
const PARTS = 1;

/**
 * Counts the texts of a query or of documents: a string, an object, or a list of them. An object holds its text in
 * `text`, or in `content` as a string or a list of parts. A part without text is a medium and does not count.
 *
 * Returns false if there is anything else, such as token ids or fields of the client's own: then not all is text.
 */
function readItemTexts(reader: TextReader, value: Span): boolean {
  const cursor = reader.cursorAt(ITEMS, value);
  if (cursor.peek() !== 'array') return readItem(reader, cursor);
  cursor.beginArray();
  while (cursor.nextElement()) if (!readItem(reader, cursor)) return false;
  return true;
}

/** An item may also be the list of its parts (SGLang). */
function readItem(reader: TextReader, cursor: JsonCursor): boolean {
  switch (cursor.peek()) {
    case 'string':
      reader.addString(cursor);
      return true;
    case 'array':
      cursor.beginArray();
      while (cursor.nextElement()) if (!readPart(reader, cursor)) return false;
      return true;
    case 'object':
      return readObject(reader, cursor);
    default:
      return false;
  }
}

function readObject(reader: TextReader, cursor: JsonCursor): boolean {
  // The fields of a document may be the client's own, so their names are in no doubt.
  const members = readMembers(cursor, ITEM_MEMBERS, null);
  const content = members.get('content');
  const text = reader.stringAt(members.get('text')) ?? reader.stringAt(content);
  if (text !== undefined) {
    reader.addText(text);
    return true;
  }
  if (content === undefined) return members.has('type');
  const parts = reader.cursorAt(PARTS, content);
  if (parts.peek() !== 'array') return false;
  parts.beginArray();
  while (parts.nextElement()) if (!readPart(reader, parts)) return false;
  return true;
}

function readPart(reader: TextReader, cursor: JsonCursor): boolean {
  if (cursor.peek() === 'string') {
    reader.addString(cursor);
    return true;
  }
  if (cursor.peek() !== 'object') return false;
  const text = reader.stringAt(readMembers(cursor, ITEM_MEMBERS, reader.names).get('text'));
  if (text !== undefined) reader.addText(text);
  return true;
}

/** Only counts the texts of all values that are there. Returns false if there is none, or not all of it is text. */
export function countItemTexts(reader: TextReader, values: readonly (Span | undefined)[]): boolean {
  reader.countOnly();
  const present = values.filter((value) => value !== undefined);
  return present.length > 0 && present.every((value) => readItemTexts(reader, value));
}
