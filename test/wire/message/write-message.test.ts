import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { sizeOf, writeMessage } from '../../../src/wire/message/write-message.ts';

/** A socket that notes what is written to it, and how; it takes more unless a write ends with `!`. */
function createSocket() {
  const calls: string[] = [];
  const socket = {
    cork: () => calls.push('cork'),
    uncork: () => calls.push('uncork'),
    write(bytes: string | Buffer, encoding?: BufferEncoding) {
      const text =
        typeof bytes === 'string'
          ? Buffer.from(bytes, encoding).toString('latin1')
          : bytes.toString('latin1');
      calls.push(text.length > 100 ? `${text.length} bytes` : text);
      return !text.endsWith('!');
    },
  };
  return { socket: socket as unknown as Socket, calls };
}

function write(before: string, texts: readonly string[], after: string) {
  const { socket, calls } = createSocket();
  const pieces = texts.map((text) => Buffer.from(text, 'latin1'));
  const canTakeMore = writeMessage(socket, before, pieces, sizeOf(pieces), after);
  return { calls, canTakeMore };
}

test('the size of pieces is the sum of their sizes', () => {
  expect(sizeOf([])).toBe(0);
  expect(sizeOf([Buffer.from('ab'), Buffer.from('cde')])).toBe(5);
});

test.each([
  [['h\xe9'], [], 't\xe9', ['h\xe9t\xe9']],
  [['h\xe9'], ['a', 'bc'], 't\xe9', ['h\xe9abct\xe9']],
  [[''], ['a', 'bc'], '', ['abc']],
  [[''], ['a'], 't', ['at']],
  [['h'], ['a'], '', ['ha']],
  [[''], ['a'], '', ['a']],
] as const)('a small message is one write: %j %j %j', ([before], pieces, after, expected) => {
  expect(write(before, pieces, after)).toEqual({ calls: expected, canTakeMore: true });
  const full = write(before, pieces, `${after}!`);
  expect(full.canTakeMore).toBe(false);
});

test('a message up to 32 KiB is copied into one, and a longer one is written in its pieces, together', () => {
  const half = 'x'.repeat(16 * 1024);
  expect(write('h', [half, half], 't').calls).toEqual([`${32 * 1024 + 2} bytes`]);
  expect(write('h', [half, `${half}x`], 't').calls).toEqual([
    ...['cork', 'h', `${16 * 1024} bytes`, `${16 * 1024 + 1} bytes`, 't', 'uncork'],
  ]);
  expect(write('', [half, half, half], '').calls).toEqual([
    'cork',
    ...Array(3).fill('16384 bytes'),
    'uncork',
  ]);
});

test('a long message can be followed by more if its last write can', () => {
  const long = 'x'.repeat(40_000);
  expect(write('h!', [`${long}!`], '').canTakeMore).toBe(false);
  expect(write('h!', [`${long}!`, 'x'], '').canTakeMore).toBe(true);
  expect(write('h!', [`${long}!`], 't').canTakeMore).toBe(true);
  expect(write('', [long, 'x'], 't!').canTakeMore).toBe(false);
  expect(write('\xe9', [long], '\xe9').calls).toEqual(['cork', '\xe9', '40000 bytes', '\xe9', 'uncork']);
});
