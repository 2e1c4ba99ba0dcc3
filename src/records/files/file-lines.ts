const LINE_FEED = 0x0a;

/** A line is one export of a collector, of at most some MB. A file without line feeds must not fill the memory. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Splits bytes at line feeds. Empty lines are skipped; a line that is too long is null. node:readline would also split
 * at U+2028, which JSON may contain unescaped.
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  const add = (piece: Uint8Array) => {
    length += piece.length;
    if (length <= MAX_LINE_BYTES) pieces.push(piece);
    else pieces = [];
  };
  const take = (): Buffer | null => {
    const line = length <= MAX_LINE_BYTES ? Buffer.concat(pieces) : null;
    pieces = [];
    length = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      if (length > 0) yield take();
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield take();
}
