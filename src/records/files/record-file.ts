import { pipeline } from 'node:stream';
import { createGunzip, createZstdDecompress, zstdDecompressSync } from 'node:zlib';
import { MAX_LINE_BYTES, readLines } from './file-lines.ts';

const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** Input that no decompressor reads, behind a compressed file: another reader may find records in it. */
export class UnusedInputError extends Error {
  override readonly name = 'UnusedInputError';
}

/** The Collector's file exporter writes the length of each compressed message before it. */
const LENGTH_BYTES = 4;

/**
 * The lines of a file of records, without their line feeds; null for one that is too long. What the file is, its first
 * bytes say, not its name: lines, compressed as a whole with gzip or zstd, or message by message as the Collector's file
 * exporter does with `compression: zstd`. Every byte is a part of it: members of gzip and frames of zstd follow each other,
 * and nothing else follows them. Rejects with the system's or zlib's error, or with an UnusedInputError.
 */
export async function* readRecordFile(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  const source = chunks[Symbol.asyncIterator]();
  const head = await readHead(source);
  const rest = concat(head, source);
  if (startsWith(head, GZIP)) yield* readLines(decompress(rest, createGunzip()));
  else if (startsWith(head, ZSTD)) yield* readLines(decompress(rest, createZstdDecompress()));
  else if (startsWith(head.subarray(LENGTH_BYTES), ZSTD)) yield* readMessages(rest);
  else yield* readLines(rest);
}

async function readHead(source: AsyncIterator<Uint8Array>): Promise<Buffer> {
  let head = Buffer.alloc(0);
  while (head.length < LENGTH_BYTES + ZSTD.length) {
    const { done, value } = await source.next();
    if (done === true) break;
    head = Buffer.concat([head, value]);
  }
  return head;
}

async function* concat(head: Buffer, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  for (let next = await source.next(); next.done !== true; next = await source.next()) yield next.value;
}

function startsWith(bytes: Buffer, start: Buffer): boolean {
  return bytes.subarray(0, start.length).equals(start);
}

async function* decompress(
  chunks: AsyncIterable<Uint8Array>,
  stream: ReturnType<typeof createGunzip | typeof createZstdDecompress>,
): AsyncGenerator<Uint8Array> {
  let givenBytes = 0;
  async function* counted() {
    for await (const chunk of chunks) {
      givenBytes += chunk.length;
      yield chunk;
    }
  }
  // The error reaches the reader of the stream.
  pipeline(counted(), stream, () => undefined);
  yield* stream;
  // Node takes a zero byte behind a member, and anything behind a frame, for the end, and reads no further. It has seen that
  // byte, so it was given more than it has read.
  if (stream.bytesWritten !== givenBytes) throw new UnusedInputError();
}

async function* readMessages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | null> {
  // Bytes are joined when a length or a message is whole: to join them at each chunk would copy a message many times.
  let pieces: Uint8Array[] = [];
  let waitingBytes = 0;
  let neededBytes = LENGTH_BYTES;
  for await (const chunk of chunks) {
    pieces.push(chunk);
    waitingBytes += chunk.length;
    if (waitingBytes < neededBytes) continue;
    const waiting = Buffer.concat(pieces);
    let start = 0;
    for (;;) {
      neededBytes = LENGTH_BYTES;
      if (waiting.length - start < neededBytes) break;
      neededBytes += waiting.readUInt32BE(start);
      if (neededBytes > MAX_LINE_BYTES) {
        yield null;
        return;
      }
      if (waiting.length - start < neededBytes) break;
      yield toMessage(waiting.subarray(start + LENGTH_BYTES, start + neededBytes));
      start += neededBytes;
    }
    pieces = [waiting.subarray(start)];
    waitingBytes = waiting.length - start;
  }
  if (waitingBytes > 0) yield null;
}

/** With `info`, zlib also returns its engine, which says how much of the input it has read. */
const WITH_ENGINE = { maxOutputLength: MAX_LINE_BYTES, info: true } as const;

/** What the types of Node do not know. */
interface Decompressed {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/** Null: it cannot be read, or not to its end. */
function toMessage(compressed: Buffer): Buffer | null {
  try {
    const { buffer, engine } = zstdDecompressSync(compressed, WITH_ENGINE) as unknown as Decompressed;
    return engine.bytesWritten === compressed.length ? buffer : null;
  } catch {
    return null;
  }
}
