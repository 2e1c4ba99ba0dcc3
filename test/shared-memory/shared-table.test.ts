import { expect, test } from 'vitest';
import { openTables, sizeOfTables, tryIncrement } from '../../src/shared-memory/shared-table.ts';

const SHAPES = {
  small: { rowCount: 3, columns: { count: 'int32', time: 'int64' } },
  large: { rowCount: 100, columns: { count: 'int32' } },
} as const;

test('a thread sees what another one has written, in the same column and row only', () => {
  const buffer = new SharedArrayBuffer(sizeOfTables(SHAPES));
  const [one, other] = [openTables(buffer, SHAPES), openTables(buffer, SHAPES)];
  Atomics.store(one.small.count, 2, 7);
  Atomics.store(one.small.time, 0, 2n ** 40n);
  Atomics.store(one.large.count, 99, -1);
  expect([...other.small.count]).toEqual([0, 0, 7]);
  expect([...other.small.time]).toEqual([2n ** 40n, 0n, 0n]);
  expect([...other.large.count]).toEqual([...new Array<number>(99).fill(0), -1]);
});

test('no two columns share a cache line', () => {
  const { small, large } = openTables(new SharedArrayBuffer(sizeOfTables(SHAPES)), SHAPES);
  const lines = [small.count, small.time, large.count].map((cells) => [
    Math.floor(cells.byteOffset / 64),
    Math.floor((cells.byteOffset + cells.byteLength - 1) / 64),
  ]);
  expect(lines).toEqual([
    [0, 0],
    [1, 1],
    [2, 8],
  ]);
});

test('a cell is incremented up to its limit', () => {
  const { count } = openTables(new SharedArrayBuffer(sizeOfTables(SHAPES)), SHAPES).small;
  expect([1, 2, 3].map(() => tryIncrement(count, 1, 2))).toEqual([true, true, false]);
  expect([...count]).toEqual([0, 2, 0]);
});
