import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutgoingPieces } from '../../../src/proxy/response/outgoing-pieces.ts';

const toText = (pieces: readonly Buffer[]) => Buffer.concat(pieces).toString('latin1');

test('bytes that follow each other in a buffer become one piece, others do not', () => {
  const bytes = Buffer.from('abcdefgh');
  const pieces = new OutgoingPieces();
  pieces.add(bytes, 0, 3);
  pieces.add(bytes, 3, 5);
  pieces.add(bytes, 6);
  pieces.add(Buffer.from('x'));
  pieces.add(bytes, 2, 2);
  expect(pieces.sizeBytes).toBe(8);
  expect(pieces.take().map(String)).toEqual(['abcde', 'gh', 'x']);
});

test('a whole buffer is passed as it is', () => {
  const bytes = Buffer.from('abc');
  const pieces = new OutgoingPieces();
  pieces.add(bytes);
  expect(pieces.take()[0]).toBe(bytes);
});

test('nothing of what was taken is given again', () => {
  const pieces = new OutgoingPieces();
  const bytes = Buffer.from('abc');
  pieces.add(bytes, 0, 1);
  const taken = pieces.take();
  pieces.add(bytes, 1, 2);
  expect(toText(taken)).toBe('a');
  expect(pieces.sizeBytes).toBe(1);
  expect(toText(pieces.take())).toBe('b');
  expect(pieces.take()).toEqual([]);
});

test('what goes out is what was added, in order', () => {
  const buffers = ['abcdefgh', '01234567'].map((text) => Buffer.from(text));
  const range = fc.record({ buffer: fc.nat(1), start: fc.nat(8), end: fc.nat(8), takes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(range), (ranges) => {
      const pieces = new OutgoingPieces();
      let [expected, out] = ['', ''];
      for (const { buffer, start, end, takes } of ranges) {
        const bytes = buffers[buffer] as Buffer;
        pieces.add(bytes, start, end);
        if (start < end) expected += bytes.toString('latin1', start, end);
        expect(pieces.sizeBytes).toBe(expected.length - out.length);
        if (takes) out += toText(pieces.take());
      }
      expect(out + toText(pieces.take())).toBe(expected);
    }),
  );
});
