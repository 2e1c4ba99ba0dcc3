import { JsonCursor, type Span } from '#json';
import type { Engine } from '#replicas/terms';
import type { RecordedEndpoint } from '../../endpoints/recorded-endpoint.ts';
import { isPydantic, readFlag } from '../inspection/engine-flags.ts';
import type { RequestFacts } from '../inspection/request-facts.ts';
import type { StreamOptions } from '../inspection/stream-options.ts';
import type { Edit } from './body-edits.ts';

/** What the gateway sets in the client's place: in `stream_options`, and llama.cpp's `timings_per_token` in the body. */
export type UsageOption = 'include_usage' | 'continuous_usage_stats' | 'timings_per_token';

/** What determines how a replica reads a request. */
export interface EngineFacts {
  readonly engine: Engine;
  /** Three numbers; null while unknown. */
  readonly engineVersion: string | null;
}

type StreamFacts = Pick<RequestFacts, 'stream' | 'streamOptions' | 'timingsPerToken'>;

/**
 * What to ask for in the client's place: the client asks for a stream and not for its usage, and this engine accepts what
 * the client sent. `isProgressive`: also for running figures, where the engine has them.
 */
export function usageOptionsToSet(
  facts: StreamFacts,
  endpoint: RecordedEndpoint,
  server: EngineFacts,
  isProgressive: boolean,
): readonly UsageOption[] {
  const { engine } = server;
  if (endpoint.undoRules === null || readFlag(facts.stream, engine) !== true) return [];
  const wish = readUsageWish(facts.streamOptions, server);
  const running = isProgressive ? runningOptions(facts, engine) : [];
  if (wish === 'not_asked') return ['include_usage', ...running];
  return wish === 'asked' && readFlag(facts.streamOptions.includeUsage, engine) === true ? running : [];
}

/** What makes an engine tell running figures, unless the client has asked for them itself. */
function runningOptions(
  { streamOptions, timingsPerToken }: StreamFacts,
  engine: Engine,
): readonly UsageOption[] {
  // SGLang writes running figures in place of `usage:null`, which nobody can take back.
  if (engine === 'vllm' && readFlag(streamOptions.continuousUsageStats, engine) !== true)
    return ['continuous_usage_stats'];
  return engine === 'llamacpp' && timingsPerToken === undefined ? ['timings_per_token'] : [];
}

/**
 * What the client tells this engine about usage in its stream. `refused`: the engine answers with an error, or the
 * member cannot be inserted; the engine gets the client's own bytes.
 */
export function readUsageWish(
  { kind, includeUsage, continuousUsageStats }: Omit<StreamOptions, 'spans'>,
  { engine, engineVersion }: EngineFacts,
): 'asked' | 'not_asked' | 'refused' {
  if (kind === 'absent' || kind === 'null') return 'not_asked';
  if (kind !== 'object') return 'refused';
  if (includeUsage === undefined) {
    // The member is required in TGI's StreamOptions (docs/openapi.json).
    if (engine === 'tgi') return 'refused';
    if (engine === 'vllm' && isBefore(engineVersion, FIRST_VLLM_THAT_MUST_BE_ASKED)) return 'asked';
  }
  // Only pydantic's engines know continuous_usage_stats; others ignore it.
  if (isPydantic(engine) && readFlag(continuousUsageStats, engine) === 'refused') return 'refused';
  const isAsked = readFlag(includeUsage, engine);
  if (isAsked === 'refused') return 'refused';
  return isAsked ? 'asked' : 'not_asked';
}

/** Earlier releases send usage for any `stream_options` without `include_usage` (vllm-project/vllm#36379). */
const FIRST_VLLM_THAT_MUST_BE_ASKED = [0, 18, 0];

/** An unknown version counts as newer. */
function isBefore(version: string | null, first: readonly number[]): boolean {
  const numbers = version?.split('.').map(Number) ?? [];
  for (const [i, number] of numbers.entries()) {
    const other = first[i] ?? 0;
    if (number !== other) return number < other;
  }
  return false;
}

/**
 * What sets these members to true, in the order of the body. An absent `stream_options` is inserted before the closing
 * brace, and so is `timings_per_token`. A present one is changed in place: every top-level one, since engines differ in
 * which of several they read. One that is neither an object nor null is left alone, so that the replica says what is
 * wrong with it.
 */
export function editsOfUsage(
  body: Buffer,
  { streamOptions, closingBrace }: RequestFacts,
  options: readonly UsageOption[],
): Edit[] {
  const inside = options.filter((option) => option !== 'timings_per_token');
  const outside = options.filter((option) => option === 'timings_per_token');
  const isInserted = inside.length > 0 && streamOptions.spans.length === 0;
  // The model precedes the closing brace, so a comma is always needed.
  const text = [
    isInserted ? `,"stream_options":{${toMembers(inside)}}` : '',
    outside.length === 0 ? '' : `,${toMembers(outside)}`,
  ].join('');
  const inserted = text === '' ? [] : [{ start: closingBrace, end: closingBrace, text }];
  if (inside.length === 0) return inserted;
  const changed = streamOptions.spans.flatMap(({ start, end, kind }) => {
    if (kind === 'null') return [{ start, end, text: `{${toMembers(inside)}}` }];
    if (kind === 'object') return editsOfObject(body, { start, end }, inside);
    return [];
  });
  return [...changed, ...inserted];
}

function editsOfObject(body: Buffer, { start, end }: Span, options: readonly UsageOption[]): Edit[] {
  const edits: Edit[] = [];
  const missing = new Set<string>(options);
  const cursor = new JsonCursor(body, start, end);
  let hasMembers = false;
  cursor.beginObject();
  while (cursor.nextKey()) {
    hasMembers = true;
    cursor.skip();
    const key = cursor.key();
    if (!options.some((option) => option === key)) continue;
    missing.delete(key);
    edits.push({ start: cursor.valueStart, end: cursor.valueEnd, text: 'true' });
  }
  if (missing.size === 0) return edits;
  const brace = end - 1;
  const members = toMembers([...missing]);
  return [...edits, { start: brace, end: brace, text: hasMembers ? `,${members}` : members }];
}

function toMembers(options: readonly string[]): string {
  return options.map((option) => `"${option}":true`).join(',');
}
