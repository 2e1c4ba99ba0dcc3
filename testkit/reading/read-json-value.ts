import type { JsonCursor } from '#json';

/** Builds the value at the cursor through its pull interface, as JSON.parse would. Throws a JsonSyntaxError. */
export function readJsonValue(cursor: JsonCursor): unknown {
  switch (cursor.peek()) {
    case 'object': {
      const members: [string, unknown][] = [];
      cursor.beginObject();
      while (cursor.nextKey()) members.push([cursor.key(), readJsonValue(cursor)]);
      return Object.fromEntries(members);
    }
    case 'array': {
      const elements: unknown[] = [];
      cursor.beginArray();
      while (cursor.nextElement()) elements.push(readJsonValue(cursor));
      return elements;
    }
    case 'string':
      return cursor.readString();
    case 'number':
      return cursor.readNumber();
    case 'null':
      cursor.readNull();
      return null;
    default:
      return cursor.readBoolean();
  }
}
