import { expect, test } from 'vitest';
import { RecentCount } from '../../../src/gateway/conditions/recent-count.ts';

test('what happened is counted for a minute, second by second', () => {
  let nowMs = 5_000;
  const count = new RecentCount(() => nowMs);
  count.add();
  count.add();
  nowMs += 9_000;
  count.add();
  expect([count.inLast(1), count.inLast(9), count.inLast(10), count.inLast(60)]).toEqual([1, 1, 3, 3]);
  nowMs += 51_000;
  expect(count.inLast(60)).toBe(1);
  nowMs += 9_000;
  expect(count.inLast(60)).toBe(0);
});

test('a count after a long silence starts anew', () => {
  let nowMs = 0;
  const count = new RecentCount(() => nowMs);
  count.add();
  nowMs += 3_600_000;
  count.add();
  expect(count.inLast(60)).toBe(1);
});
