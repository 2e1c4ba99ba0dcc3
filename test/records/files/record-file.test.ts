import { randomBytes } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readRecordFile } from '../../../src/records/files/record-file.ts';

afterEach(() => vi.restoreAllMocks());

/** As the Collector's file exporter writes messages with `compression: zstd`. */
function toFile(messages: readonly Buffer[]): Buffer {
  const parts = messages.flatMap((message) => {
    const compressed = zstdCompressSync(message);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(compressed.length);
    return [length, compressed];
  });
  return Buffer.concat(parts);
}

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

const MESSAGES = ['first', '', 'x'.repeat(10_000), 'last'].map((text) => Buffer.from(text));

test.each([1, 2, 3, 5, 7, 64, 100_000])('messages are found in chunks of %i bytes', async (size) => {
  const found = await Array.fromAsync(readRecordFile(inChunks(toFile(MESSAGES), size)));
  expect(found).toEqual(MESSAGES);
});

test.each([1, 2, 100])('a file of a few bytes is one of lines, in chunks of %i bytes', async (size) => {
  const read = (text: string) => Array.fromAsync(readRecordFile(inChunks(Buffer.from(text), size)));
  expect(await read('')).toEqual([]);
  expect(await read('{}\n')).toEqual([Buffer.from('{}')]);
  expect(await read('{}\n[1]')).toEqual([Buffer.from('{}'), Buffer.from('[1]')]);
});

test.each([1, 3, 16])(
  'a file that ends %i bytes early has a last message that is not read',
  async (missing) => {
    const file = toFile(MESSAGES);
    const found = await Array.fromAsync(readRecordFile(inChunks(file.subarray(0, -missing), 7)));
    expect(found.at(-1)).toBeNull();
    expect(found.slice(0, 3)).toEqual(MESSAGES.slice(0, 3));
  },
);

test('the bytes of a large message are copied a few times at most, however small the chunks', async () => {
  const message = randomBytes(4 * 1024 * 1024);
  const file = toFile([message, message]);
  let copiedBytes = 0;
  const concat = Buffer.concat.bind(Buffer);
  vi.spyOn(Buffer, 'concat').mockImplementation((...given) => {
    const joined = concat(...given);
    copiedBytes += joined.length;
    return joined;
  });
  const found = await Array.fromAsync(readRecordFile(inChunks(file, 1024)));
  expect(found.map((each) => each?.equals(message))).toEqual([true, true]);
  expect(copiedBytes).toBeLessThan(3 * file.length);
});

describe.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const)('a file in %s', (_, compress) => {
  const [first, second] = ['a\n', 'b\n'].map((text) => compress(text)) as [Buffer, Buffer];
  const read = (file: Buffer, size: number) => Array.fromAsync(readRecordFile(inChunks(file, size)));

  test.each([1, 7, 100_000])('of two parts is read to its end, in chunks of %i bytes', async (size) => {
    expect(await read(Buffer.concat([first, second]), size)).toEqual([Buffer.from('a'), Buffer.from('b')]);
  });

  test.each([
    ['a zero byte', Buffer.alloc(1)],
    ['a zero byte and another part', Buffer.concat([Buffer.alloc(1), second])],
    ['zeros without end', Buffer.alloc(300_000)],
    ['half of another part', second.subarray(0, 9)],
    ['a line', Buffer.from('{}\n')],
  ])('is refused as a whole with %s behind it', async (_behind, bytes) => {
    const file = Buffer.concat([first, bytes]);
    for (const size of [1, first.length, 64, 1_000_000]) {
      await expect(read(file, size), `in chunks of ${size}`).rejects.toThrow();
    }
    if (bytes[0] === 0)
      await expect(read(file, 1_000_000)).rejects.toMatchObject({ name: 'UnusedInputError' });
  });
});

test('a message with bytes behind its frame is not read', async () => {
  const compressed = Buffer.concat([zstdCompressSync('first'), Buffer.from('hidden')]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(compressed.length);
  const file = Buffer.concat([length, compressed, toFile([Buffer.from('last')])]);
  expect(await Array.fromAsync(readRecordFile(inChunks(file, 1000)))).toEqual([null, Buffer.from('last')]);
});

test('a message that says that it is longer than 64 MiB ends the reading, and one of 64 MiB does not', async () => {
  const read = async (bytes: number) => {
    let hasReadOn = false;
    async function* chunks() {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes - length.length);
      yield Buffer.concat([length, zstdCompressSync('first')]);
      hasReadOn = true;
    }
    return [await Array.fromAsync(readRecordFile(chunks())), hasReadOn];
  };
  expect(await read(64 * 1024 * 1024 + 1)).toEqual([[null], false]);
  expect(await read(64 * 1024 * 1024)).toEqual([[null], true]);
});
