import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineStore } from '#otel/queue/line-store.ts';

const BLOCK_BYTES = 256 * 1024;

const toLines = (words: readonly string[], firstStamp = 0) =>
  words.map((word, index) => ({ line: Buffer.from(word), stamp: firstStamp + index }));

const contentsOf = (store: LineStore) =>
  store.peek(store.size).map(({ line, stamp }) => [Buffer.from(line).toString(), stamp]);

test('lines are copies: what they were made from can be used again', () => {
  const store = new LineStore();
  const scratch = Buffer.from('first');
  store.append(scratch, 1);
  scratch.write('other');
  store.append(scratch, 2);
  expect(contentsOf(store)).toEqual([
    ['first', 1],
    ['other', 2],
  ]);
});

test('memory whose lines are gone is used again, and does not show in lines that are there', () => {
  const store = new LineStore();
  const third = Math.floor(BLOCK_BYTES / 3);
  for (let round = 0; round < 100; round++) {
    store.append(Buffer.alloc(third, round), round);
    if (round > 4) store.removeFirst();
    for (const { line, stamp } of store.peek(9)) {
      expect(Buffer.alloc(third, stamp).equals(line)).toBe(true);
    }
  }
  expect(store.size).toBe(5);
  expect(store.bytes).toBe(5 * third);
});

test('a line that is longer than a block is whole', () => {
  const store = new LineStore();
  const long = Buffer.alloc(BLOCK_BYTES + 1, 'x');
  for (const [stamp, line] of [Buffer.from('a'), long, Buffer.from('b'), long].entries()) {
    store.append(line, stamp);
  }
  expect(store.peek(9).map(({ line }) => line.length)).toEqual([1, BLOCK_BYTES + 1, 1, BLOCK_BYTES + 1]);
  expect([1, 2, 3, 4, 5].map(() => store.removeFirst())).toEqual([1, BLOCK_BYTES + 1, 1, BLOCK_BYTES + 1, 0]);
});

test('it behaves as a list', () => {
  const words = fc.array(fc.stringMatching(/^[a-z]{0,4}$/), { maxLength: 5 });
  const step = fc.oneof(
    fc.record({ kind: fc.constantFrom('append' as const, 'prepend' as const), words }),
    fc.record({ kind: fc.constant('remove' as const), words }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const store = new LineStore();
      let model: [string, number][] = [];
      for (const [index, { kind, words }] of steps.entries()) {
        const lines = toLines(words, index * 10);
        const pairs = words.map((word, at): [string, number] => [word, index * 10 + at]);
        if (kind === 'append') {
          for (const { line, stamp } of lines) store.append(line, stamp);
          model = [...model, ...pairs];
        } else if (kind === 'prepend') {
          store.prepend(lines);
          model = [...pairs, ...model];
        } else {
          for (const _ of words) expect(store.removeFirst()).toBe(model.shift()?.[0].length ?? 0);
        }
        expect(contentsOf(store)).toEqual(model);
        expect([store.size, store.bytes]).toEqual([
          model.length,
          model.map(([word]) => word).join('').length,
        ]);
      }
    }),
  );
});
