import type { Engine } from '../config/config.ts';
import { JsonCursor, type Span } from '../json/cursor.ts';
import type { RequestFacts, StreamOptions } from './request-facts.ts';

const MEMBER = '"include_usage":true';

/**
 * Whether the client itself asked this engine for usage figures in its stream.
 *
 * vLLM's `StreamOptions.include_usage` defaults to true: there an object without the key asks, too (vLLM,
 * `entrypoints/openai/protocol.py`). An explicit null asks nowhere.
 */
export function isUsageAsked(
  { streamOptions }: { readonly streamOptions: StreamOptions },
  engine: Engine,
): boolean {
  if (streamOptions.includeUsage === true) return true;
  return engine === 'vllm' && streamOptions.isObject && streamOptions.includeUsage === 'absent';
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
