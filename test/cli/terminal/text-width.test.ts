import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCharacter } from '#testkit/any-character.ts';
import { shorten, widthOf } from '../../../src/cli/terminal/text-width.ts';

test.each([
  ['vllm-qwen3-7d9f8b6c5-x2k4p', 13, 'vllm-q…-x2k4p'],
  ['vllm', 4, 'vllm'],
  ['vllm', 3, 'v…m'],
  ['vllm', 2, 'v…'],
  ['vllm', 1, '…'],
  ['vllm', 0, ''],
  // Two columns each: what does not fit as a whole is left out.
  ['名前名前名前', 8, '名前…前'],
  ['a👩‍👩‍👧b👩‍👩‍👧c', 4, 'a…c'],
])('%s loses its middle in %i columns', (text, columns, shown) => {
  expect(shorten(text, columns)).toBe(shown);
});

test('a text whose first words count loses its end', () => {
  expect(shorten('unreachable 3m (connection refused)', 20, 'end')).toBe('unreachable 3m (con…');
});

test.each([
  ['llama-70b, qwen', 15, 'llama-70b, qwen'],
  ['llama-70b, qwen, other', 14, 'llama-70b, +2'],
  ['llama-70b-instruct, qwen', 14, 'llama…ruct, +1'],
  ['llama-70b-instruct', 14, 'llama-7…struct'],
])(
  'the list %s becomes its first name and the number of the others in %i columns',
  (text, columns, shown) => {
    expect(shorten(text, columns, 'list')).toBe(shown);
  },
);

test('a text never becomes wider than it may be, nor is it cut without need', () => {
  const texts = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: anyCharacter }));
  fc.assert(
    fc.property(
      texts,
      fc.integer({ min: 0, max: 40 }),
      fc.constantFrom('middle', 'end', 'list'),
      (text, columns, cut) => {
        const shown = shorten(text, columns, cut);
        expect(widthOf(shown)).toBeLessThanOrEqual(columns);
        if (widthOf(text) <= columns) expect(shown).toBe(text);
      },
    ),
  );
});
