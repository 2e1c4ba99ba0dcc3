import { type JsonCursor, readText } from '#json';
import { type NameDoubtsReader, readCheckedText } from './member-names.ts';

/** For a level as it is written: `medium`, or a word that an engine knows. */
const MAX_LEVEL_BYTES = 64;

/**
 * Where a body may say how much a model shall reason: itself in `reasoning_effort` (chat completions), as the member
 * `effort` in `reasoning` (OpenAI's responses) and `output_config` (Anthropic's messages).
 */
export type ReasoningMember = 'reasoning_effort' | 'reasoning' | 'output_config';

/** Reads the value of one of the members; undefined if it says no level. */
export function readReasoningLevel(
  cursor: JsonCursor,
  member: ReasoningMember,
  names: NameDoubtsReader,
): string | undefined {
  return member === 'reasoning_effort'
    ? readText(cursor, MAX_LEVEL_BYTES)
    : readCheckedText(cursor, 'effort', MAX_LEVEL_BYTES, names);
}
