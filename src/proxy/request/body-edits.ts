import type { Span } from '../../json/cursor.ts';

/** Replaces a span, which may be empty, with this text. */
export interface Edit extends Span {
  readonly text: string;
}

/** Applies edits, in the order of the body. The pieces of the body are views of it. */
export function applyEdits(body: Buffer, edits: readonly Edit[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end, text } of edits) {
    pieces.push(body.subarray(at, start), Buffer.from(text));
    at = end;
  }
  pieces.push(body.subarray(at));
  return pieces;
}
