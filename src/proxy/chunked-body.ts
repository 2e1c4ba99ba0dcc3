import type { ServerResponse } from 'node:http';

/** Above this, a chunk is sent in three pieces, as node:http does it: copying it would cost more. */
const JOINED_BYTES = 16 * 1024;
const LINE_END = '\r\n';
const LAST_CHUNK = '0\r\n';

/**
 * The body of a response whose length is not known, in chunked coding (RFC 9112 7.1), each write one chunk in one
 * piece. node:http would send three (size, data, line end), which costs a stream's event a fifth more.
 *
 * Create it once the head is written; from then on the body is written by it alone. A response that is not chunked
 * (to an HTTP/1.0 client) is written as it is.
 */
export class ChunkedBody {
  readonly #response: ServerResponse;
  readonly #isChunked: boolean;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.#isChunked = response.chunkedEncoding;
    // The head has promised it; the chunks are ours from here on.
    response.chunkedEncoding = false;
  }

  /** Writes the pieces as one chunk. Returns whether the client takes more. */
  write(pieces: readonly Buffer[]): boolean {
    if (!this.#isChunked) return this.#writeAll(pieces);
    const sizeBytes = sizeOf(pieces);
    // A chunk of no bytes would be the end. undici has one when it goes on after a pause.
    if (sizeBytes === 0) return true;
    if (sizeBytes <= JOINED_BYTES) return this.#response.write(toChunk(pieces, sizeBytes, LINE_END));
    this.#response.write(toHead(sizeBytes), 'latin1');
    this.#writeAll(pieces);
    return this.#response.write(LINE_END, 'latin1');
  }

  /** Ends the body whole, with its last pieces, and with trailer fields if there are any. */
  end(pieces: readonly Buffer[], trailers: readonly (readonly [name: string, value: string])[]): void {
    if (!this.#isChunked) {
      this.#writeAll(pieces.slice(0, -1));
      this.#response.end(pieces.at(-1));
      return;
    }
    const fields = trailers.map(([name, value]) => `${name}: ${value}${LINE_END}`);
    const last = LAST_CHUNK + fields.join('') + LINE_END;
    const sizeBytes = sizeOf(pieces);
    if (sizeBytes > 0 && sizeBytes <= JOINED_BYTES) {
      this.#response.end(toChunk(pieces, sizeBytes, LINE_END + last));
    } else {
      this.write(pieces);
      this.#response.end(last, 'latin1');
    }
  }

  #writeAll(pieces: readonly Buffer[]): boolean {
    let canTakeMore = true;
    for (const piece of pieces) canTakeMore = this.#response.write(piece);
    return canTakeMore;
  }
}

function sizeOf(pieces: readonly Buffer[]): number {
  let sizeBytes = 0;
  for (const { length } of pieces) sizeBytes += length;
  return sizeBytes;
}

/** What stands before the bytes of a chunk. */
function toHead(sizeBytes: number): string {
  return sizeBytes.toString(16) + LINE_END;
}

function toChunk(pieces: readonly Buffer[], sizeBytes: number, tail: string): Buffer {
  const head = toHead(sizeBytes);
  const chunk = Buffer.allocUnsafe(head.length + sizeBytes + tail.length);
  let at = chunk.write(head, 'latin1');
  for (const piece of pieces) {
    chunk.set(piece, at);
    at += piece.length;
  }
  chunk.write(tail, at, 'latin1');
  return chunk;
}
