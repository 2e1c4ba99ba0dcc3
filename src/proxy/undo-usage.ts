import type { RecordedEndpoint } from '#otel/request-record.ts';
import type { Engine } from '../config/config.ts';
import { JsonCursor } from '../json/cursor.ts';
import type { StreamOptions } from './request-facts.ts';
import type { MemberSpan, StreamChunk } from './stream-chunk.ts';
import { isPlaceholder } from './usage.ts';

/**
 * What our `include_usage` changes in an engine's stream beside the usage chunk itself, and so has to be
 * undone for a client that did not ask. Facts: engine captures, see docs/record.md.
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
      // vLLM honours continuous_usage_stats only together with include_usage.
      return {
        cutUsage: streamOptions.continuousUsageStats ? 'always' : 'never',
        movedMember: 'systemFingerprint',
      };
    case 'llamacpp':
      return { cutUsage: 'never', movedMember: isChat ? 'timings' : null };
    case 'openai':
      return { cutUsage: 'placeholder', movedMember: null };
    case 'ollama':
      return { cutUsage: isChat ? 'never' : 'placeholder', movedMember: null };
    case 'sglang':
    case 'tgi':
      return { cutUsage: 'never', movedMember: null };
  }
}

/** What to do with one complete event of a stream into which we injected usage. */
export type UndoDecision = 'pass' | 'withhold' | 'cut_usage' | 'hold';

/** Decides on one event. */
export function decideUndo(chunk: StreamChunk, rules: UndoRules): UndoDecision {
  if (chunk.kind !== 'object') return 'pass';
  if (chunk.hasEmptyChoices && chunk.usage !== null) {
    return chunk.hasError || chunk.hasForeignMember ? 'cut_usage' : 'withhold';
  }
  if (chunk.usageMember !== null && isCut(chunk, rules)) return 'cut_usage';
  return rules.movedMember !== null && chunk.finished.length > 0 ? 'hold' : 'pass';
}

function isCut(chunk: StreamChunk, rules: UndoRules): boolean {
  if (rules.cutUsage === 'placeholder') return chunk.usage === null || isPlaceholder(chunk.usage);
  return rules.cutUsage === 'always';
}

const prefixCursor = new JsonCursor(Buffer.alloc(0));
const DATA_FIELD = Buffer.from('data:');
const OPEN_BRACE = 0x7b;
const SPACE = 0x20;

/**
 * Whether the first bytes of an event already show that it will pass as it is: its data is no JSON object,
 * or it has a choice and the rules touch nothing but the usage chunk.
 */
export function prefixShowsPass(prefix: Buffer, rules: UndoRules): boolean {
  if (prefix.length < DATA_FIELD.length || !prefix.subarray(0, DATA_FIELD.length).equals(DATA_FIELD))
    return false;
  const start = prefix[DATA_FIELD.length] === SPACE ? DATA_FIELD.length + 1 : DATA_FIELD.length;
  const first = prefix[start];
  if (first === undefined || first === 0x0a || first === 0x0d) return false;
  if (first !== OPEN_BRACE) return true;
  return rules.movedMember === null && rules.cutUsage === 'never' && hasBegunChoice(prefix, start);
}

function hasBegunChoice(prefix: Buffer, start: number): boolean {
  const json = prefixCursor.reset(prefix, start, prefix.length);
  try {
    json.beginObject();
    while (json.nextKey()) {
      if (json.key() !== 'choices' || json.peek() !== 'array') {
        json.skip();
        continue;
      }
      json.beginArray();
      return json.nextElement();
    }
  } catch {
    // The prefix ends in the middle of something: nothing shown yet.
  }
  return false;
}

const COMMA = 0x2c;
const isWhiteSpace = (byte: number | undefined) =>
  byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** The byte range to take out of an object's text to remove a member with its comma. */
export function rangeOfMember(bytes: Buffer, member: MemberSpan): MemberSpan {
  let before = member.start - 1;
  while (isWhiteSpace(bytes[before])) before--;
  if (bytes[before] === COMMA) return { start: before, end: member.end };
  let after = member.end;
  while (isWhiteSpace(bytes[after])) after++;
  return { start: member.start, end: bytes[after] === COMMA ? after + 1 : member.end };
}
