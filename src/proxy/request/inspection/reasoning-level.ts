import type { JsonCursor } from '../../../json/cursor.ts';
import { readMemberOf, readText } from '../../../json/read-value.ts';

/** For a level as it is written: `medium`, or a word that an engine knows. */
const MAX_LEVEL_BYTES = 64;

/**
 * Where a body may say how much a model shall reason: itself in `reasoning_effort` (chat completions), as the member
 * `effort` in `reasoning` (OpenAI's responses) and `output_config` (Anthropic's messages).
 */
export type ReasoningMember = 'reasoning_effort' | 'reasoning' | 'output_config';

/** Reads the value of one of the members; undefined if it says no level. */
export function readReasoningLevel(cursor: JsonCursor, member: ReasoningMember): string | undefined {
  const readLevel = (value: JsonCursor) => readText(value, MAX_LEVEL_BYTES);
  return member === 'reasoning_effort' ? readLevel(cursor) : readMemberOf(cursor, 'effort', readLevel);
}
