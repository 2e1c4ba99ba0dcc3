import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EncodedSpanStore } from '../../../otel/queue/encoded-span-store.ts';

const BLOCK_BYTES = 256 * 1024;

const toSpans = (words: readonly string[], firstTag = 0) =>
  words.map((word, index) => ({ encodedSpan: Buffer.from(word), tag: firstTag + index }));

const contentsOf = (store: EncodedSpanStore) =>
  store.peek(store.size).map(({ encodedSpan, tag }) => [Buffer.from(encodedSpan).toString(), tag]);

test('spans are copied: their source can be reused', () => {
  const store = new EncodedSpanStore();
  const scratch = Buffer.from('first');
  store.append(scratch, 1);
  scratch.write('other');
  store.append(scratch, 2);
  expect(contentsOf(store)).toEqual([
    ['first', 1],
    ['other', 2],
  ]);
});

test('the memory of removed spans is reused, and the other spans do not change', () => {
  const store = new EncodedSpanStore();
  const third = Math.floor(BLOCK_BYTES / 3);
  for (let round = 0; round < 100; round++) {
    store.append(Buffer.alloc(third, round), round);
    if (round > 4) store.removeFirst();
    for (const { encodedSpan, tag } of store.peek(9)) {
      expect(Buffer.alloc(third, tag).equals(encodedSpan)).toBe(true);
    }
  }
  expect(store.size).toBe(5);
  expect(store.bytes).toBe(5 * third);
});

test('a span that is longer than a block is stored whole', () => {
  const store = new EncodedSpanStore();
  const long = Buffer.alloc(BLOCK_BYTES + 1, 'x');
  for (const [tag, encodedSpan] of [Buffer.from('a'), long, Buffer.from('b'), long].entries()) {
    store.append(encodedSpan, tag);
  }
  expect(store.peek(9).map(({ encodedSpan }) => encodedSpan.length)).toEqual([
    1,
    BLOCK_BYTES + 1,
    1,
    BLOCK_BYTES + 1,
  ]);
  expect([1, 2, 3, 4, 5].map(() => store.removeFirst())).toEqual([1, BLOCK_BYTES + 1, 1, BLOCK_BYTES + 1, 0]);
});

describe('memory', () => {
  const QUARTER = BLOCK_BYTES / 4;
  afterEach(() => vi.restoreAllMocks());

  /** Fills and empties a store, and counts how often it asks for memory. */
  function createCounted() {
    const store = new EncodedSpanStore();
    const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow');
    return {
      append: (count: number, bytes: number) => {
        const span = Buffer.alloc(bytes);
        for (let index = 0; index < count; index++) store.append(span, index);
      },
      empty: () => {
        while (store.removeFirst() > 0);
      },
      takeCount: () => {
        const { length } = allocated.mock.calls;
        allocated.mockClear();
        return length;
      },
    };
  }

  test('is filled to its last byte, and used again when it is empty', () => {
    const { append, empty, takeCount } = createCounted();
    append(4, QUARTER);
    expect(takeCount()).toBe(1);
    append(1, QUARTER);
    expect(takeCount()).toBe(1);
    empty();
    append(5, QUARTER);
    empty();
    // A span that just fits needs no block of its own.
    append(1, BLOCK_BYTES);
    expect(takeCount()).toBe(0);
    append(1, BLOCK_BYTES + 1);
    empty();
    append(1, BLOCK_BYTES + 1);
    expect(takeCount()).toBe(2);
  });

  test('of a long outage is freed, all but eight blocks', () => {
    const { append, empty, takeCount } = createCounted();
    append(80, QUARTER);
    empty();
    expect(takeCount()).toBe(20);
    append(80, QUARTER);
    expect(takeCount()).toBe(12);
  });
});

test('the store behaves like a list', () => {
  const words = fc.array(fc.stringMatching(/^[a-z]{0,4}$/), { maxLength: 5 });
  const step = fc.oneof(
    fc.record({ kind: fc.constantFrom('append' as const, 'prepend' as const), words }),
    fc.record({ kind: fc.constant('remove' as const), words }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const store = new EncodedSpanStore();
      let model: [string, number][] = [];
      for (const [index, { kind, words }] of steps.entries()) {
        const spans = toSpans(words, index * 10);
        const pairs = words.map((word, at): [string, number] => [word, index * 10 + at]);
        if (kind === 'append') {
          for (const { encodedSpan, tag } of spans) store.append(encodedSpan, tag);
          model = [...model, ...pairs];
        } else if (kind === 'prepend') {
          store.prepend(spans);
          model = [...pairs, ...model];
        } else {
          for (const _ of words) expect(store.removeFirst()).toBe(model.shift()?.[0].length ?? 0);
        }
        expect(contentsOf(store)).toEqual(model);
        expect([store.size, store.bytes]).toEqual([
          model.length,
          model.map(([word]) => word).join('').length,
        ]);
      }
    }),
  );
});
