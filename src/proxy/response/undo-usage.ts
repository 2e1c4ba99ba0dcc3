import { COMMA, isWhiteSpace } from '#json/bytes';
import type { MemberSpan, StreamChunk } from './events/stream-chunk.ts';
import { isPlaceholder } from './usage-tally.ts';

/**
 * What our `include_usage`, `continuous_usage_stats` and `timings_per_token` change in an engine's stream. It is undone for a client that did
 * not ask. Each endpoint has its rules per engine.
 */
export interface UndoRules {
  /** The usage chunk: the client gets it only if it asked for it. */
  readonly usageChunk: 'withhold' | 'pass';
  /** The `usage` member of chunks that are not the usage chunk: left, cut when null or zeros, always cut. */
  readonly cutUsage: 'never' | 'placeholder' | 'always';
  /** A member that the engine puts on the usage chunk instead of the finishing chunk. */
  readonly movedMember: 'timings' | 'systemFingerprint' | null;
  /** Whether `timings` of chunks before the finishing chunk are cut. */
  readonly cutsTimings: boolean;
}

/** What to do with one complete event of a stream for which we asked for usage. */
export type UndoDecision = 'pass' | 'withhold' | 'cut_usage' | 'cut_timings' | 'hold' | 'cut_usage_and_hold';

/** Decides on one event. */
export function decideUndo(chunk: StreamChunk, rules: UndoRules): UndoDecision {
  if (chunk.kind !== 'object') return 'pass';
  if (chunk.hasEmptyChoices && chunk.usage !== null) {
    if (rules.usageChunk === 'pass') return 'pass';
    return chunk.hasError || chunk.hasForeignMember ? 'cut_usage' : 'withhold';
  }
  const cuts = chunk.usageMember !== null && isCut(chunk, rules);
  if (rules.movedMember !== null && chunk.finished.length > 0) return cuts ? 'cut_usage_and_hold' : 'hold';
  if (cuts) return 'cut_usage';
  const isRunning = chunk.choiceIndex !== null && chunk.finished.length === 0;
  return rules.cutsTimings && isRunning && chunk.members.timings !== null ? 'cut_timings' : 'pass';
}

/**
 * Whether this chunk shows that the server sends usage to everybody, so that our asking changed nothing. vLLM with
 * `--enable-force-include-usage` writes running figures unasked (should_include_usage).
 */
export function showsForcedUsage(chunk: StreamChunk, rules: UndoRules): boolean {
  const isUnaskedFigure = rules.movedMember === 'systemFingerprint' && rules.cutUsage === 'placeholder';
  return isUnaskedFigure && chunk.choiceIndex !== null && chunk.usage !== null && !isPlaceholder(chunk.usage);
}

function isCut(chunk: StreamChunk, rules: UndoRules): boolean {
  if (chunk.usage === null || isPlaceholder(chunk.usage)) return rules.cutUsage !== 'never';
  // A chunk with running figures has one choice. A whole response with several choices (vLLM's beam search) has its
  // own usage, asked or not.
  return rules.cutUsage === 'always' && chunk.choiceIndex !== null;
}

/** The byte range to cut from an object's text to remove a member and its comma. */
export function rangeOfMember(bytes: Buffer, member: MemberSpan): MemberSpan {
  let before = member.start - 1;
  while (isWhiteSpace(bytes[before])) before--;
  if (bytes[before] === COMMA) return { start: before, end: member.end };
  let after = member.end;
  while (isWhiteSpace(bytes[after])) after++;
  return { start: member.start, end: bytes[after] === COMMA ? after + 1 : member.end };
}
