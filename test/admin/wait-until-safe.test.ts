import { expect, test } from 'vitest';
import { waitUntilSafe } from '../../src/admin/wait-until-safe.ts';

const busy = { drain: { drained: true }, isSafeToStop: false };

test('whoever leaves ends the wait', async () => {
  const leave = new AbortController();
  const wait = waitUntilSafe(busy, { timeoutMs: 3_600_000, signal: leave.signal });
  leave.abort();
  await wait;
  await waitUntilSafe(busy, { timeoutMs: 3_600_000, signal: leave.signal });
});

test('what is not known is waited for', async () => {
  const replica: { drain: { drained: boolean }; isSafeToStop: boolean | null } = {
    ...busy,
    isSafeToStop: null,
  };
  let isOver = false;
  const { signal } = new AbortController();
  const wait = waitUntilSafe(replica, { timeoutMs: 3_600_000, signal }).then(() => {
    isOver = true;
  });
  await waitUntilSafe(replica, { timeoutMs: 1, signal });
  expect(isOver).toBe(false);
  replica.isSafeToStop = true;
  await wait;
});
