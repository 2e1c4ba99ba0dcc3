import { expect, test } from 'vitest';
import { BatchLimit } from '../../../../otel/queue/export-loop/batch-limit.ts';

const MEBIBYTE = 1024 * 1024;

test('a batch that is too large halves the limit, which grows again with accepted batches', () => {
  const limit = new BatchLimit();
  expect(limit.bytes).toBe(4 * MEBIBYTE);
  limit.shrink(MEBIBYTE);
  expect(limit.bytes).toBe(MEBIBYTE / 2);
  for (let batch = 0; batch < 44; batch += 1) limit.grow(limit.bytes);
  expect(limit.bytes).toBeLessThan(MEBIBYTE);
  limit.grow(limit.bytes);
  expect(limit.bytes).toBeGreaterThan(MEBIBYTE);
  for (let batch = 0; batch < 200; batch += 1) limit.grow(limit.bytes);
  expect(limit.bytes).toBe(4 * MEBIBYTE);
});

test('a batch that is too large is worth a log line when the limit is half of the lowest so far', () => {
  const limit = new BatchLimit();
  expect([1000, 600, 500, 100].map((bytes) => limit.shrink(bytes))).toEqual([true, false, true, true]);
});

test('cut connections are forgotten with the first accepted batch', () => {
  const limit = new BatchLimit();
  for (const bytes of [1000, 500, 250]) limit.suspect(bytes);
  expect(limit.bytes).toBe(125);
  limit.grow(100);
  expect(limit.bytes).toBe(4 * MEBIBYTE);
});

test('connections that are cut again right after that were cut because of the size', () => {
  const limit = new BatchLimit();
  limit.suspect(1000);
  limit.grow(500);
  limit.suspect(1000);
  limit.grow(500);
  expect(limit.bytes).toBeLessThan(520);
});

test('a large batch that is accepted after that clears the suspicion for the next time', () => {
  const limit = new BatchLimit();
  limit.suspect(1000);
  limit.grow(500);
  limit.grow(3 * MEBIBYTE);
  limit.suspect(1000);
  limit.grow(500);
  expect(limit.bytes).toBe(4 * MEBIBYTE);
});

test('what the collector says is too large is not restored after cut connections', () => {
  const limit = new BatchLimit();
  limit.suspect(1000);
  limit.shrink(1000);
  limit.grow(100);
  expect(limit.bytes).toBe(508);
});

test('the limit from before cut connections is restored as it was', () => {
  const limit = new BatchLimit();
  limit.shrink(1000);
  limit.suspect(400);
  limit.grow(400);
  expect(limit.bytes).toBe(500);
});

test.each([
  ['half of the limit', 2 * MEBIBYTE, 504],
  ['more than half of the limit', 2 * MEBIBYTE + 1, 4 * MEBIBYTE],
])(
  'a batch of %s that is accepted after that clears the suspicion only if it proves the size',
  (_, bytes, left) => {
    const limit = new BatchLimit();
    limit.suspect(1000);
    limit.grow(500);
    limit.grow(bytes);
    limit.suspect(992);
    limit.grow(496);
    expect(limit.bytes).toBe(left);
  },
);

test('the smallest limit is one byte, rounded down, and it grows too', () => {
  const limit = new BatchLimit();
  for (const [bytes, left] of [
    [1, 1],
    [2, 1],
    [3, 1],
    [5, 2],
  ] as const) {
    limit.shrink(bytes);
    expect(limit.bytes).toBe(left);
  }
  limit.grow(1);
  expect(limit.bytes).toBe(3);
});
