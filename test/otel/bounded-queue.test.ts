import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedQueue } from '#otel/bounded-queue.ts';

test('a full queue refuses the newcomer and keeps what it has', () => {
  const queue = new BoundedQueue<string>(2);
  expect([queue.offer('a'), queue.offer('b'), queue.offer('c')]).toEqual([true, true, false]);
  expect(queue.peek(9)).toEqual(['a', 'b']);
});

test('items that were read keep their places until they are removed', () => {
  const queue = new BoundedQueue<string>(2);
  queue.offer('a');
  queue.offer('b');
  expect(queue.peek(1)).toEqual(['a']);
  expect(queue.offer('c')).toBe(false);
  queue.remove(1);
  expect(queue.offer('c')).toBe(true);
  expect(queue.peek(9)).toEqual(['b', 'c']);
});

test('it behaves as a list that is cut at its capacity, however often it goes round', () => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('offer' as const), item: fc.nat() }),
    fc.record({ kind: fc.constant('remove' as const), count: fc.nat(5) }),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }),
      fc.array(operation, { maxLength: 60 }),
      (capacity, operations) => {
        const queue = new BoundedQueue<number>(capacity);
        const model: number[] = [];
        for (const step of operations) {
          if (step.kind === 'offer') {
            const hasRoom = model.length < capacity;
            expect(queue.offer(step.item)).toBe(hasRoom);
            if (hasRoom) model.push(step.item);
          } else {
            queue.remove(step.count);
            model.splice(0, step.count);
          }
          expect(queue.size).toBe(model.length);
          expect(queue.peek(capacity)).toEqual(model);
        }
      },
    ),
  );
});
