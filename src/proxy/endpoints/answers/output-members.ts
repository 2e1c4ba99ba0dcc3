import type { JsonCursor } from '#json';
import type { StreamChunk } from '../../response/events/stream-chunk.ts';

/** What an event says, while it is read. */
export type ChunkDraft = { -readonly [K in keyof StreamChunk]: StreamChunk[K] };

/** Reads output: a string, list or object that is not empty. */
export function readOutput(json: JsonCursor, chunk: ChunkDraft): void {
  switch (json.peek()) {
    case 'string':
      json.readStringSpan();
      noteText(json.valueStart, json.valueEnd, chunk);
      return;
    case 'array':
      json.beginArray();
      while (json.nextElement()) {
        noteOutput(chunk);
        json.skip();
      }
      return;
    case 'object':
      json.beginObject();
      while (json.nextKey()) {
        noteOutput(chunk);
        json.skip();
      }
      return;
    default:
      json.skip();
  }
}

function noteText(start: number, end: number, chunk: ChunkDraft): void {
  const isEmpty = start === end;
  if (!chunk.hasOutput && (chunk.text === null || !isEmpty)) chunk.text = { start, end };
  else if (!isEmpty) chunk.text = null;
  if (!isEmpty) chunk.hasOutput = true;
}

/** Notes output that is not one string. */
export function noteOutput(chunk: ChunkDraft): void {
  chunk.hasOutput = true;
  chunk.text = null;
}
