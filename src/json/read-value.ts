import type { JsonCursor } from './cursor.ts';

/** The string at the cursor; undefined, and skipped, if it is anything else or longer than `maxBytes` as it is written. */
export function readText(cursor: JsonCursor, maxBytes: number): string | undefined {
  if (cursor.peek() !== 'string') {
    cursor.skip();
    return undefined;
  }
  const hasEscapes = cursor.readStringSpan();
  const isTooLong = cursor.valueEnd - cursor.valueStart > maxBytes;
  return isTooLong ? undefined : cursor.decodeString(hasEscapes);
}

/** The number at the cursor if it is a whole one from 0 on; undefined, and skipped, if it is anything else. */
export function readCount(cursor: JsonCursor): number | undefined {
  if (cursor.peek() !== 'number') {
    cursor.skip();
    return undefined;
  }
  const value = cursor.readNumber();
  // Adding zero turns -0 into 0.
  return Number.isSafeInteger(value) && value >= 0 ? value + 0 : undefined;
}

/**
 * Reads one member of the object at the cursor; undefined if there is none, or no object. Of duplicate members the last
 * one counts.
 */
export function readMemberOf<Value>(
  cursor: JsonCursor,
  key: string,
  read: (cursor: JsonCursor) => Value,
): Value | undefined {
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return undefined;
  }
  let value: Value | undefined;
  cursor.beginObject();
  while (cursor.nextKey()) {
    if (cursor.key() === key) value = read(cursor);
    else cursor.skip();
  }
  return value;
}
