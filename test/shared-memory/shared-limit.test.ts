import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocateLimit, clearLimit, readLimit, SharedLimit } from '../../src/shared-memory/shared-limit.ts';

function createLimits(workerCount: number, limit: number) {
  const memory = allocateLimit(workerCount, limit);
  const limits = Array.from({ length: workerCount }, (_, worker) => new SharedLimit(memory, worker));
  return { memory, limits: limits as [SharedLimit, SharedLimit, ...SharedLimit[]] };
}

test('workers share the limit, to the last unit', () => {
  const { limits } = createLimits(2, 10);
  const [first, second] = limits;
  expect([first.tryAcquire(6), second.tryAcquire(5), second.tryAcquire(4), first.tryAcquire(1)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  first.release(6);
  expect(second.tryAcquire(6)).toBe(true);
});

test('the amount that a terminated worker held is released', () => {
  const { memory, limits } = createLimits(2, 10);
  const [first, second] = limits;
  first.tryAcquire(10);
  clearLimit(memory, 0);
  expect(second.tryAcquire(10)).toBe(true);
  clearLimit(memory, 1);
  expect(readLimit(memory).now).toBe(0);
});

test('what all workers hold can be read', () => {
  const { memory, limits } = createLimits(2, 10);
  const [first, second] = limits;
  expect(readLimit(memory)).toEqual({ now: 0, limit: 10 });
  first.tryAcquire(3);
  second.tryAcquire(4);
  expect(readLimit(memory)).toEqual({ now: 7, limit: 10 });
  first.release(3);
  expect(readLimit(memory)).toEqual({ now: 4, limit: 10 });
});

test('a share of the limit can be left to others', () => {
  const { limits } = createLimits(1, 10);
  const [limit] = limits;
  expect([limit.tryAcquire(6, 0.5), limit.tryAcquire(5, 0.5), limit.tryAcquire(1, 0.5)]).toEqual([
    ...[false, true, false],
  ]);
  expect(limit.tryAcquire(5)).toBe(true);
});

test('a limit of a size that no 32 bits count is never exceeded, and is read in its own measure', () => {
  const { memory, limits } = createLimits(1, 2 ** 30 + 1);
  const [limit] = limits;
  expect(limit.tryAcquire(2 ** 30 + 2)).toBe(false);
  expect(limit.tryAcquire(2 ** 29)).toBe(true);
  expect(readLimit(memory)).toEqual({ now: 2 ** 29, limit: 2 ** 30 + 1 });
});

test('a limit above 32 bits holds, with an error of a few bytes per worker', () => {
  const terabyte = 1024 ** 4;
  const { limits } = createLimits(2, terabyte);
  const [first, second] = limits;
  expect(first.tryAcquire(terabyte / 2)).toBe(true);
  expect(second.tryAcquire(terabyte / 2 - 2048)).toBe(true);
  expect(second.tryAcquire(2048)).toBe(true);
  expect(first.tryAcquire(1)).toBe(false);
});

test('the sum never exceeds the limit, and released amounts can be acquired again', () => {
  const step = fc.record({ worker: fc.nat(2), amount: fc.integer({ min: 0, max: 12 }), takes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const { limits } = createLimits(3, 20);
      const held = [0, 0, 0];
      const sum = () => held.reduce((total, amount) => total + amount, 0);
      for (const { worker, amount, takes } of steps) {
        const limit = limits[worker];
        const mine = held[worker] ?? 0;
        if (takes) {
          const fits = sum() + amount <= 20;
          expect(limit?.tryAcquire(amount)).toBe(fits);
          if (fits) held[worker] = mine + amount;
        } else {
          limit?.release(Math.min(amount, mine));
          held[worker] = mine - Math.min(amount, mine);
        }
      }
      for (const [worker, amount] of held.entries()) limits[worker]?.release(amount);
      expect(limits[0].tryAcquire(20)).toBe(true);
    }),
  );
});
