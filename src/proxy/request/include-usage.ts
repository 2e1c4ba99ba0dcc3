import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import type { Engine } from '../../config/config.ts';
import { JsonCursor, type Span } from '../../json/cursor.ts';
import { isPydantic, readFlag } from './engine-flags.ts';
import type { RequestFacts, StreamOptions } from './request-facts.ts';

const MEMBER = '"include_usage":true';

/** What must be known of a replica to tell how it reads a request. */
export interface EngineFacts {
  readonly engine: Engine;
  /** Three numbers; null while it is not known. */
  readonly engineVersion: string | null;
}

type StreamFacts = Pick<RequestFacts, 'stream' | 'streamOptions'>;

/** Whether usage is to be asked for in the client's place: it streams, did not ask, and this engine takes what it sent. */
export function isUsageToBeAsked(
  facts: StreamFacts,
  endpoint: RecordedEndpoint,
  server: EngineFacts,
): boolean {
  return (
    endpoint !== '/v1/embeddings' &&
    readFlag(facts.stream, server.engine) === true &&
    readUsageWish(facts.streamOptions, server) === 'not_asked'
  );
}

/**
 * What the client says to this engine about usage in its stream. `refused`: the engine answers it with an error, or
 * nothing can be put in; it is to get the client's own bytes.
 */
export function readUsageWish(
  { kind, includeUsage, continuousUsageStats }: Omit<StreamOptions, 'spans'>,
  { engine, engineVersion }: EngineFacts,
): 'asked' | 'not_asked' | 'refused' {
  if (kind === 'absent' || kind === 'null') return 'not_asked';
  if (kind !== 'object') return 'refused';
  if (includeUsage === undefined) {
    // Its StreamOptions has to have the member (TGI, docs/openapi.json).
    if (engine === 'tgi') return 'refused';
    if (engine === 'vllm' && isBefore(engineVersion, FIRST_VLLM_THAT_WANTS_TO_BE_ASKED)) return 'asked';
  }
  // Only these know of running figures; others ignore the member.
  if (isPydantic(engine) && readFlag(continuousUsageStats, engine) === 'refused') return 'refused';
  const isAsked = readFlag(includeUsage, engine);
  if (isAsked === 'refused') return 'refused';
  return isAsked ? 'asked' : 'not_asked';
}

/** Releases before it sent usage for any `stream_options` without `include_usage` (vllm-project/vllm#36379). */
const FIRST_VLLM_THAT_WANTS_TO_BE_ASKED = [0, 18, 0];

/** What is not known counts as newer. */
function isBefore(version: string | null, first: readonly number[]): boolean {
  const numbers = version?.split('.').map(Number) ?? [];
  for (const [i, number] of numbers.entries()) {
    const other = first[i] ?? 0;
    if (number !== other) return number < other;
  }
  return false;
}

/**
 * The body with `stream_options.include_usage` set to true. Every byte but those of the change is the client's:
 * where `stream_options` is absent, it is inserted before the closing brace; where it is present, it is changed
 * in place, every top-level one, since nobody knows which of several an engine reads. One that is neither an
 * object nor null is left alone: the replica is to say what is wrong with it.
 *
 * @returns the pieces to send, in order; those that are the client's are views of `body`
 */
export function spliceIncludeUsage(body: Buffer, facts: RequestFacts): readonly Buffer[] {
  return applyEdits(body, editsOf(body, facts));
}

/** Replaces a span, which may be empty, by this text. */
interface Edit extends Span {
  readonly text: string;
}

function editsOf(body: Buffer, { streamOptions, closingBrace }: RequestFacts): Edit[] {
  if (streamOptions.spans.length === 0) {
    // A member stands before the closing brace, the model, so that a comma is always due.
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

function applyEdits(body: Buffer, edits: readonly Edit[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of edits) {
    pieces.push(body.subarray(at, start), Buffer.from(text));
    at = end;
  }
  pieces.push(body.subarray(at));
  return pieces;
}
