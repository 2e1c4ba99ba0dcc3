import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRecordQueue } from './create-queue.ts';

const toRecord = (word: string) => ({ encodedSpan: Buffer.from(word), queuedAtMs: 0 });

/** A queue of words; each byte is one character. */
function createQueue(capacity: number, capacityBytes = 100) {
  const queue = createRecordQueue({ capacity, capacityBytes });
  return {
    offer: (word: string) => queue.offer(toRecord(word)),
    prepend: (words: readonly string[]) => queue.prepend(words.map(toRecord)),
    peek: (count: number, maxBytes?: number) =>
      queue.peek(count, maxBytes).map(({ encodedSpan }) => Buffer.from(encodedSpan).toString()),
    remove: (count: number) => queue.remove(count),
    size: () => queue.size,
    bytes: () => queue.bytes,
    fill: () => queue.fill,
  };
}

test('a full queue refuses a new record and keeps the others', () => {
  const queue = createQueue(2);
  expect([queue.offer('a'), queue.offer('b'), queue.offer('c')]).toEqual([true, true, false]);
  expect(queue.peek(9)).toEqual(['a', 'b']);
});

test('records that were read keep their reservations until they are removed', () => {
  const queue = createQueue(2);
  queue.offer('a');
  queue.offer('b');
  expect(queue.peek(1)).toEqual(['a']);
  expect(queue.offer('c')).toBe(false);
  queue.remove(1);
  expect(queue.offer('c')).toBe(true);
  expect(queue.peek(9)).toEqual(['b', 'c']);
});

test('a record that is too large for the remaining capacity is refused, a smaller one is not', () => {
  const queue = createQueue(9, 5);
  expect([queue.offer('abc'), queue.offer('abc'), queue.offer('ab')]).toEqual([true, false, true]);
  expect(queue.bytes()).toBe(5);
  expect(queue.fill()).toBe(1);
});

test('at most the given number of bytes is read, but at least one record', () => {
  const queue = createQueue(9);
  for (const word of ['abc', 'de', 'f']) queue.offer(word);
  expect(queue.peek(9, 5)).toEqual(['abc', 'de']);
  expect(queue.peek(9, 1)).toEqual(['abc']);
});

test('records are inserted before the others in their order, as many as there is room for', () => {
  const queue = createQueue(4, 6);
  queue.offer('z');
  expect(queue.prepend(['a', 'bb', 'ccc'])).toBe(2);
  expect(queue.peek(9)).toEqual(['a', 'bb', 'z']);
  expect(queue.prepend(['d', 'e'])).toBe(1);
  expect(queue.prepend(['f'])).toBe(0);
  expect(queue.peek(9)).toEqual(['d', 'a', 'bb', 'z']);
});

test('the queue behaves like a list with bounds, however much passes through it', () => {
  const word = fc.stringMatching(/^[a-z]{0,4}$/);
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('offer' as const), word }),
    fc.record({ kind: fc.constant('prepend' as const), words: fc.array(word, { maxLength: 4 }) }),
    fc.record({ kind: fc.constant('remove' as const), count: fc.nat(5) }),
  );
  const weightOf = (words: readonly string[]) => words.join('').length;
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 16 }),
      fc.array(operation, { maxLength: 60 }),
      (capacity, capacityBytes, operations) => {
        const queue = createQueue(capacity, capacityBytes);
        const hasRoom = (words: readonly string[]) =>
          words.length <= capacity && weightOf(words) <= capacityBytes;
        let model: string[] = [];
        for (const step of operations) {
          if (step.kind === 'remove') {
            queue.remove(step.count);
            model.splice(0, step.count);
          } else if (step.kind === 'offer') {
            const longer = [...model, step.word];
            expect(queue.offer(step.word)).toBe(hasRoom(longer));
            if (hasRoom(longer)) model = longer;
          } else {
            let count = 0;
            while (count < step.words.length && hasRoom([...step.words.slice(0, count + 1), ...model]))
              count += 1;
            expect(queue.prepend(step.words)).toBe(count);
            model.unshift(...step.words.slice(0, count));
          }
          expect(queue.size()).toBe(model.length);
          expect(queue.bytes()).toBe(weightOf(model));
          expect(queue.peek(capacity)).toEqual(model);
        }
      },
    ),
  );
});
