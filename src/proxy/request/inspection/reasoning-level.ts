import type { JsonCursor } from '../../../json/cursor.ts';
import { readText } from './conversation.ts';

/** For a level as it is written: `medium`, or a word that an engine knows. */
const MAX_LEVEL_BYTES = 64;

/**
 * Where a body may say how much a model shall reason: itself in `reasoning_effort` (chat completions), as the member
 * `effort` in `reasoning` (OpenAI's responses) and `output_config` (Anthropic's messages).
 */
export type ReasoningMember = 'reasoning_effort' | 'reasoning' | 'output_config';

/** Reads the value of one of the members; undefined if it says no level. */
export function readReasoningLevel(cursor: JsonCursor, member: ReasoningMember): string | undefined {
  if (member === 'reasoning_effort') return readText(cursor, MAX_LEVEL_BYTES);
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return undefined;
  }
  let level: string | undefined;
  cursor.beginObject();
  while (cursor.nextKey()) {
    if (cursor.key() === 'effort') level = readText(cursor, MAX_LEVEL_BYTES);
    else cursor.skip();
  }
  return level;
}
