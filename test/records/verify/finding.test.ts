import { describe, expect, test } from 'vitest';
import { Finding, RangeList } from '../../../src/records/verify/finding.ts';

describe('a list of ranges', () => {
  test('joins ranges that follow each other, and counts their numbers', () => {
    const list = new RangeList();
    for (const [first, last] of [
      [1, 2],
      [3, 3],
      [5, 9],
    ] as const)
      list.add(first, last);
    expect(list.ranges).toEqual([
      { first: 1, last: 3 },
      { first: 5, last: 9 },
    ]);
    expect([list.count, list.hasMore]).toEqual([8, false]);
  });

  test('keeps 10,000 ranges, and counts those beyond', () => {
    const list = new RangeList();
    for (let index = 0; index < 10_000; index++) list.add(2 * index, 2 * index);
    expect([list.ranges.length, list.hasMore]).toEqual([10_000, false]);
    list.add(30_000, 30_001);
    // It follows the last one that is there, but not the last one that is kept.
    list.add(30_002, 30_002);
    expect([list.ranges.length, list.count, list.hasMore]).toEqual([10_000, 10_003, true]);
    expect(list.ranges.at(-1)).toEqual({ first: 19_998, last: 19_998 });
  });
});

describe('a finding', () => {
  test('is clean at first, and with records that are not committed yet', () => {
    const finding = new Finding();
    finding.notCommitted.add(1, 1);
    expect(finding.isClean).toBe(true);
  });

  test.each<[string, (finding: Finding) => void]>([
    ['a missing record', ({ missing }) => missing.add(1, 1)],
    ['a declared one', ({ declared }) => declared.lost.add(1, 1)],
    ['a doubled one', ({ doubled }) => doubled.add(1, 1)],
    ['a changed one', ({ changed }) => changed.add(1, 1)],
    ['an unexpected one', ({ unexpected }) => unexpected.add(1, 1)],
    ['an unproven one', ({ unproven }) => unproven.add(1, 1)],
    ['a missing ledger span', ({ missingLedgers }) => missingLedgers.push({ first: 1, last: 1 })],
    ['a changed ledger span', ({ changedLedgers }) => changedLedgers.push(1)],
    ['a broken chain', ({ brokenChain }) => brokenChain.push(1)],
    ['sums that differ', (finding) => Object.assign(finding, { sumsDiffer: true })],
  ])('is not clean with %s', (_, spoil) => {
    const finding = new Finding();
    spoil(finding);
    expect(finding.isClean).toBe(false);
  });
});
