import { JsonCursor } from '#json';
import type { Engine } from '#replicas/terms';
import type { RecordedEndpoint } from '../../endpoints/recorded-endpoint.ts';
import { isPydantic, readFlag } from '../inspection/engine-flags.ts';
import type { RequestFacts } from '../inspection/request-facts.ts';
import type { StreamOptions } from '../inspection/stream-options.ts';
import type { Edit } from './body-edits.ts';

const MEMBER = '"include_usage":true';

/** What determines how a replica reads a request. */
export interface EngineFacts {
  readonly engine: Engine;
  /** Three numbers; null while unknown. */
  readonly engineVersion: string | null;
}

type StreamFacts = Pick<RequestFacts, 'stream' | 'streamOptions'>;

/**
 * Whether to ask for usage in the client's place: the client asks for a stream and not for usage, and this engine
 * accepts what the client sent.
 */
export function isUsageToBeAsked(
  facts: StreamFacts,
  endpoint: RecordedEndpoint,
  server: EngineFacts,
): boolean {
  return (
    endpoint.undoRules !== null &&
    readFlag(facts.stream, server.engine) === true &&
    readUsageWish(facts.streamOptions, server) === 'not_asked'
  );
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
 * What sets `stream_options.include_usage` to true, in the order of the body. An absent `stream_options` is inserted
 * before the closing brace. A present one is changed in place: every top-level one, since engines differ in which of
 * several they read. One that is neither an object nor null is left alone, so that the replica says what is wrong with
 * it.
 */
export function editsOfIncludeUsage(body: Buffer, { streamOptions, closingBrace }: RequestFacts): Edit[] {
  if (streamOptions.spans.length === 0) {
    // The model precedes the closing brace, so a comma is always needed.
    return [{ start: closingBrace, end: closingBrace, text: `,"stream_options":{${MEMBER}}` }];
  }
  return streamOptions.spans.flatMap(({ start, end, kind }) => {
    if (kind === 'null') return [{ start, end, text: `{${MEMBER}}` }];
    if (kind === 'object') return editsOfObject(body, start, end);
    return [];
  });
}

function editsOfObject(body: Buffer, start: number, end: number): Edit[] {
  const edits: Edit[] = [];
  const cursor = new JsonCursor(body, start, end);
  let hasMembers = false;
  cursor.beginObject();
  while (cursor.nextKey()) {
    hasMembers = true;
    cursor.skip();
    if (cursor.key() !== 'include_usage') continue;
    edits.push({ start: cursor.valueStart, end: cursor.valueEnd, text: 'true' });
  }
  if (edits.length > 0) return edits;
  const brace = end - 1;
  return [{ start: brace, end: brace, text: hasMembers ? `,${MEMBER}` : MEMBER }];
}
