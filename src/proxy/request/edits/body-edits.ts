import type { Span } from '#json';
import { ChunkList } from '../read-body.ts';

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

/**
 * Applies an edit to a body in chunks: the span is in one of them, or in several. No chunk of the result is empty: an
 * empty one would end a body that is sent in chunks.
 */
export function replaceInChunks(chunks: readonly Buffer[], { start, end, text }: Edit): ChunkList {
  const edited = new ChunkList();
  const push = (piece: Buffer) => {
    if (piece.length > 0) edited.push(piece);
  };
  let at = 0;
  for (const chunk of chunks) {
    const next = at + chunk.length;
    push(chunk.subarray(0, Math.max(0, start - at)));
    if (at <= start && start < next) push(Buffer.from(text));
    push(chunk.subarray(Math.max(0, end - at)));
    at = next;
  }
  return edited;
}
