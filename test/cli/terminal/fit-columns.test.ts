import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fitColumns, GAP } from '../../../src/cli/terminal/table.ts';

const name = { natural: 40, least: 20, rank: 0 };
const count = { natural: 8, least: null, rank: 0 };

test.each([
  ['everything has room', 62, [40, 8, 10]],
  ['a name is shortened before a column is left out', 48, [26, 8, 10]],
  ['a column is left out when the name has become short', 41, [31, 8, null]],
  ['what cannot fit even so has a very short name', 15, [5, 8, null]],
])('%s', (_, total, widths) => {
  expect(fitColumns([name, count, { natural: 10, least: null, rank: 1 }], total)).toEqual(widths);
});

test('columns of the largest rank leave first, and of one rank the last', () => {
  const needs = [count, { ...count, rank: 1 }, { ...count, rank: 2 }, { ...count, rank: 2 }];
  const shownAt = (total: number) => fitColumns(needs, total).map((width) => width !== null);
  expect(shownAt(38)).toEqual([true, true, true, true]);
  expect(shownAt(37)).toEqual([true, true, true, false]);
  expect(shownAt(27)).toEqual([true, true, false, false]);
  expect(shownAt(17)).toEqual([true, false, false, false]);
});

test('two long names become equally wide', () => {
  expect(fitColumns([name, { ...name, natural: 100 }], 72)).toEqual([35, 35]);
});

test('a table fits whenever what must stay can be shortened, and wastes no room that a text needs', () => {
  const need = fc.record({
    natural: fc.integer({ min: 0, max: 300 }),
    least: fc.option(fc.integer({ min: 1, max: 40 })),
    rank: fc.integer({ min: 0, max: 4 }),
  });
  fc.assert(
    fc.property(
      fc.array(need, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 250 }),
      (needs, total) => {
        const widths = fitColumns(needs, total);
        const shown = widths.filter((width) => width !== null);
        const sum = shown.reduce((all, width) => all + width, 0) + GAP * (shown.length - 1);
        const canBeShortened = (index: number) => needs[index]?.least !== null && (widths[index] ?? 0) > 1;
        for (const [index, width] of widths.entries()) {
          const { natural = 0, rank = 0 } = needs[index] ?? {};
          if (width === null) expect(rank).toBeGreaterThan(0);
          else expect(width).toBeLessThanOrEqual(natural);
          if (sum > total) expect(width !== null && (rank > 0 || canBeShortened(index))).toBe(false);
          if (sum < total && width !== null) expect(width).toBe(natural);
        }
      },
    ),
  );
});
