import { expect, test } from 'vitest';
import { IdleWatcher } from '../../../src/admin/drains/idle-watcher.ts';

const HOUR_MS = 3_600_000;
const never = () => false;

test('a client that disconnects ends its wait, and cannot start one after that', async () => {
  const watcher = new IdleWatcher();
  const leave = new AbortController();
  const wait = watcher.waitUntil({}, never, { timeoutMs: HOUR_MS, signal: leave.signal });
  leave.abort();
  await wait;
  await watcher.waitUntil({}, never, { timeoutMs: HOUR_MS, signal: leave.signal });
});

test('a wait ends when its time is up, and the others continue', async () => {
  const watcher = new IdleWatcher();
  const { signal } = new AbortController();
  const key = {};
  let isOver = false;
  let hasEnded = false;
  const wait = watcher
    .waitUntil(key, () => isOver, { timeoutMs: HOUR_MS, signal })
    .then(() => {
      hasEnded = true;
    });
  await watcher.waitUntil(key, () => isOver, { timeoutMs: 1, signal });
  expect(hasEnded).toBe(false);
  isOver = true;
  await wait;
});

test('five hundred waits share each check, and no further wait may start', async () => {
  const watcher = new IdleWatcher();
  const { signal } = new AbortController();
  const key = {};
  let looks = 0;
  const isOver = () => {
    looks += 1;
    return looks > 501;
  };
  const all = Array.from({ length: 500 }, async () => {
    using place = watcher.takePlace();
    expect(place).not.toBeNull();
    await watcher.waitUntil(key, isOver, { timeoutMs: HOUR_MS, signal });
  });
  expect([watcher.takePlace(), looks]).toEqual([null, 500]);
  await Promise.all(all);
  expect(looks).toBe(502);
  using free = watcher.takePlace();
  expect(free).not.toBeNull();
});
