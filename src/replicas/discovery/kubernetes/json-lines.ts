/** A line was longer than allowed. */
export class LongLineError extends Error {}

/** Splits a stream of bytes into lines of UTF-8, without empty ones. Throws a LongLineError beyond `maxBytes`. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void> {
  let parts: Uint8Array[] = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      if (heldBytes + end - start > maxBytes) throw new LongLineError();
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8');
      parts = [];
      heldBytes = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    heldBytes += chunk.length - start;
    if (heldBytes > maxBytes) throw new LongLineError();
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
}

const LF = 0x0a;
