import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import type { Engine } from '../../config/config.ts';
import { isWhiteSpace } from '../../json/bytes.ts';
import { readFlag } from '../request/engine-flags.ts';
import type { StreamOptions } from '../request/request-facts.ts';
import type { MemberSpan, StreamChunk } from './stream-chunk.ts';
import { isPlaceholder } from './usage.ts';

/**
 * What our `include_usage` changes in an engine's stream beside the usage chunk itself, and so has to be
 * undone for a client that did not ask. Facts: docs/engines.md, test/support/engines.
 */
export interface UndoRules {
  /** The `usage` member of chunks that are not the usage chunk: left, cut when null or zeros, always cut. */
  readonly cutUsage: 'never' | 'placeholder' | 'always';
  /** A member that the engine would have put on the finishing chunk and moved to the usage chunk. */
  readonly movedMember: 'timings' | 'systemFingerprint' | null;
}

/** The rules for one engine, endpoint and request. */
export function undoRulesFor(
  engine: Engine,
  endpoint: RecordedEndpoint,
  streamOptions: Pick<StreamOptions, 'continuousUsageStats'>,
): UndoRules {
  const isChat = endpoint === '/v1/chat/completions';
  switch (engine) {
    case 'vllm':
      // vLLM honours continuous_usage_stats only together with include_usage. Without it, releases of 2024
      // wrote `usage:null` on every chunk once include_usage was on, and no `usage` otherwise.
      return {
        cutUsage: readFlag(streamOptions.continuousUsageStats, engine) === true ? 'always' : 'placeholder',
        movedMember: 'systemFingerprint',
      };
    case 'llamacpp':
      return { cutUsage: 'never', movedMember: isChat ? 'timings' : null };
    case 'openai':
      return { cutUsage: 'placeholder', movedMember: null };
    case 'ollama':
      return { cutUsage: isChat ? 'never' : 'placeholder', movedMember: null };
    case 'sglang':
      // SGLang completions write `usage:null` unasked, and continuous_usage_stats works without include_usage.
      return { cutUsage: 'never', movedMember: null };
    case 'tgi':
      return { cutUsage: 'never', movedMember: null };
  }
}

/** What to do with one complete event of a stream into which we injected usage. */
export type UndoDecision = 'pass' | 'withhold' | 'cut_usage' | 'hold' | 'cut_usage_and_hold';

/** Decides on one event. */
export function decideUndo(chunk: StreamChunk, rules: UndoRules): UndoDecision {
  if (chunk.kind !== 'object') return 'pass';
  if (chunk.hasEmptyChoices && chunk.usage !== null) {
    return chunk.hasError || chunk.hasForeignMember ? 'cut_usage' : 'withhold';
  }
  const cuts = chunk.usageMember !== null && isCut(chunk, rules);
  if (rules.movedMember !== null && chunk.finished.length > 0) return cuts ? 'cut_usage_and_hold' : 'hold';
  return cuts ? 'cut_usage' : 'pass';
}

/**
 * Whether this chunk shows that the server sends usage to everybody, so that nothing came of our asking:
 * vLLM's `--enable-force-include-usage` writes running figures, which nobody asked for (should_include_usage).
 */
export function showsForcedUsage(chunk: StreamChunk, rules: UndoRules): boolean {
  const isUnaskedFigure = rules.movedMember === 'systemFingerprint' && rules.cutUsage === 'placeholder';
  return isUnaskedFigure && chunk.choiceIndex !== null && chunk.usage !== null && !isPlaceholder(chunk.usage);
}

function isCut(chunk: StreamChunk, rules: UndoRules): boolean {
  if (chunk.usage === null || isPlaceholder(chunk.usage)) return rules.cutUsage !== 'never';
  // A chunk with running figures has one choice; a whole response with several (vLLM's beam search) has its
  // own usage, asked or not.
  return rules.cutUsage === 'always' && chunk.choiceIndex !== null;
}

const COMMA = 0x2c;

/** The byte range to take out of an object's text to remove a member with its comma. */
export function rangeOfMember(bytes: Buffer, member: MemberSpan): MemberSpan {
  let before = member.start - 1;
  while (isWhiteSpace(bytes[before])) before--;
  if (bytes[before] === COMMA) return { start: before, end: member.end };
  let after = member.end;
  while (isWhiteSpace(bytes[after])) after++;
  return { start: member.start, end: bytes[after] === COMMA ? after + 1 : member.end };
}
