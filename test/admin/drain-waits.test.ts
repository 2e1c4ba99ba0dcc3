import { expect, test } from 'vitest';
import { DrainWaits } from '../../src/admin/drain-waits.ts';

const HOUR_MS = 3_600_000;
const never = () => false;

test('whoever leaves ends the wait, and one that has left does not begin one', async () => {
  const waits = new DrainWaits();
  const leave = new AbortController();
  const wait = waits.wait({}, never, { timeoutMs: HOUR_MS, signal: leave.signal });
  leave.abort();
  await wait;
  await waits.wait({}, never, { timeoutMs: HOUR_MS, signal: leave.signal });
});

test('a wait ends when its time is up, and others go on', async () => {
  const waits = new DrainWaits();
  const { signal } = new AbortController();
  const key = {};
  let isOver = false;
  let hasEnded = false;
  const wait = waits
    .wait(key, () => isOver, { timeoutMs: HOUR_MS, signal })
    .then(() => {
      hasEnded = true;
    });
  await waits.wait(key, () => isOver, { timeoutMs: 1, signal });
  expect(hasEnded).toBe(false);
  isOver = true;
  await wait;
});

test('five hundred waits look once, and no more of them begin', async () => {
  const waits = new DrainWaits();
  const { signal } = new AbortController();
  const key = {};
  let looks = 0;
  const isOver = () => {
    looks += 1;
    return looks > 501;
  };
  const all = Array.from({ length: 500 }, () => waits.wait(key, isOver, { timeoutMs: HOUR_MS, signal }));
  expect([waits.isFull, looks]).toEqual([true, 500]);
  await Promise.all(all);
  expect([waits.isFull, looks]).toEqual([false, 502]);
});
