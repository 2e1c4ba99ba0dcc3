import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocateLimit, clearLimit, SharedLimit } from '../../src/http/shared-limit.ts';

function createLimits(workerCount: number, limit: number) {
  const memory = allocateLimit(workerCount, limit);
  const limits = Array.from({ length: workerCount }, (_, worker) => new SharedLimit(memory, worker));
  return { memory, limits: limits as [SharedLimit, SharedLimit, ...SharedLimit[]] };
}

test('workers share what there is, to the last unit', () => {
  const { limits } = createLimits(2, 10);
  const [first, second] = limits;
  expect([first.tryTake(6), second.tryTake(5), second.tryTake(4), first.tryTake(1)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  first.giveBack(6);
  expect(second.tryTake(6)).toBe(true);
});

test('what a worker held that ended is free', () => {
  const { memory, limits } = createLimits(2, 10);
  const [first, second] = limits;
  first.tryTake(10);
  clearLimit(memory, 0);
  expect(second.tryTake(10)).toBe(true);
});

test('a limit beyond what a word holds is kept, each worker being a few bytes off at most', () => {
  const terabyte = 1024 ** 4;
  const { limits } = createLimits(2, terabyte);
  const [first, second] = limits;
  expect(first.tryTake(terabyte / 2)).toBe(true);
  expect(second.tryTake(terabyte / 2 - 2048)).toBe(true);
  expect(second.tryTake(2048)).toBe(true);
  expect(first.tryTake(1)).toBe(false);
});

test('the sum never exceeds the limit, and all that was given back can be taken again', () => {
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
          expect(limit?.tryTake(amount)).toBe(fits);
          if (fits) held[worker] = mine + amount;
        } else {
          limit?.giveBack(Math.min(amount, mine));
          held[worker] = mine - Math.min(amount, mine);
        }
      }
      for (const [worker, amount] of held.entries()) limits[worker]?.giveBack(amount);
      expect(limits[0].tryTake(20)).toBe(true);
    }),
  );
});
