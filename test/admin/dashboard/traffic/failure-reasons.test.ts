import { expect, test } from 'vitest';
import {
  type FailureReason,
  FailureReasons,
} from '../../../../src/admin/dashboard/traffic/failure-reasons.ts';

const REASON: FailureReason = { code: 'upstream_failed', status: 502, replica: 'a', model: 'm' };

test('reasons are told apart by code, status, replica and model, most frequent first', () => {
  const reasons = new FailureReasons();
  const others: readonly Partial<FailureReason>[] = [
    { code: '502' },
    { status: 200 },
    { replica: null },
    { replica: '' },
    { model: null },
    { model: '__proto__' },
  ];
  for (const other of others) reasons.add({ ...REASON, ...other }, 1);
  for (const slice of [1, 2, 12]) reasons.add(REASON, slice);
  const listed = reasons.listFrom(1, 50);
  expect(listed[0]).toEqual({ ...REASON, count: 3 });
  expect(listed.slice(1)).toEqual(others.map((other) => ({ ...REASON, ...other, count: 1 })));
  expect(reasons.listFrom(2, 50)).toEqual([{ ...REASON, count: 2 }]);
  expect(reasons.listFrom(1, 1)).toHaveLength(1);
});

test('too many of them are counted without replica and model', () => {
  const reasons = new FailureReasons();
  for (let index = 0; index < 3_000; index++) reasons.add({ ...REASON, replica: `r${index}` }, 0);
  const listed = reasons.listFrom(0, Number.POSITIVE_INFINITY);
  expect(listed[0]).toEqual({ ...REASON, replica: '_OTHER', model: '_OTHER', count: 3_000 - 1_024 });
  expect(listed).toHaveLength(1_025);
});
