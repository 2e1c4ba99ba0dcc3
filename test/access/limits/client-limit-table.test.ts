import { expect, test } from 'vitest';
import { allocateClientLimits, ClientLimitTable } from '../../../src/access/limits/client-limit-table.ts';

/** A table for two workers, at a time that stands still. */
const startTable = () => new ClientLimitTable(allocateClientLimits(2), () => 1e15);

test('a row that is cleared begins at nothing, in every worker', () => {
  const table = startTable();
  table.noteUsedRows(2);
  table.charge('requests', 1, 5e9);
  table.charge('tokens', 1, 5e9);
  table.addUsed('requests', 1, 3);
  table.addUsed('tokens', 1, 30);
  table.setShare(1, 1);
  for (const worker of [0, 1]) table.beginInflight(worker, 1, null);
  table.beginInflight(1, 1, 2);

  table.clearRow(1);
  expect(table.isUnused(1)).toBe(true);
  expect([table.usedOf('requests', 1), table.usedOf('tokens', 1)]).toEqual([0, 0]);
  expect([table.takeChanged(1), table.takeRefused(1)]).toEqual([false, 0]);
  for (const worker of [0, 1]) table.clearWorker(worker);
  expect(table.inflightOf(1)).toBe(0);
  // The share is the idle one again: the whole limit of a gateway that is alone.
  expect([1, 2, 3].map(() => table.beginInflight(0, 1, 2))).toEqual([true, true, false]);
});

test('requests that max_inflight refused are told once', () => {
  const table = startTable();
  table.beginInflight(0, 0, 1);
  table.beginInflight(1, 0, 1);
  expect([table.takeRefused(0), table.takeRefused(0)]).toEqual([1, 0]);
  for (const worker of [0, 1]) table.beginInflight(worker, 0, 1);
  expect(table.takeRefused(0)).toBe(2);
});

test('a row is in use while one of its budgets is not full', () => {
  const table = startTable();
  table.charge('requests', 0, 1);
  table.charge('tokens', 1, 1);
  expect([0, 1, 2].map((row) => table.isUnused(row))).toEqual([false, false, true]);
});

test('what a worker had in flight when it died is gone from every row in use, and only that', () => {
  const table = startTable();
  table.noteUsedRows(2);
  for (const row of [0, 1]) for (const worker of [0, 1, 1]) table.beginInflight(worker, row, null);
  for (let time = 0; time < 2; time++) {
    table.clearWorker(1);
    expect([0, 1].map((row) => table.inflightOf(row))).toEqual([1, 1]);
  }
  table.clearWorker(0);
  expect([0, 1].map((row) => table.inflightOf(row))).toEqual([0, 0]);
});

test('what a worker has ended is not in flight on it any more when it dies', () => {
  const table = startTable();
  table.noteUsedRows(1);
  for (const worker of [0, 1]) table.beginInflight(worker, 0, null);
  table.endInflight(1, 0);
  table.clearWorker(1);
  expect(table.inflightOf(0)).toBe(1);
});
