import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mapInTurns, toJsonLine } from '../../src/admin/in-turns.ts';

test('an answer with long lists is the JSON of its value, in pieces', async () => {
  const member = fc.oneof(
    fc.jsonValue(),
    fc.constant(undefined),
    fc.array(fc.jsonValue({ maxDepth: 1 }), { minLength: 95, maxLength: 305, size: 'max' }),
  );
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), member), async (value) => {
      const line = toJsonLine(value);
      const pieces = typeof line === 'string' ? [line] : await Array.fromAsync(line);
      expect(pieces.join('')).toBe(`${JSON.stringify(value)}\n`);
      const isLong = Object.values(value).some((list) => Array.isArray(list) && list.length > 100);
      expect(typeof line).toBe(isLong ? 'object' : 'string');
    }),
    { numRuns: 50 },
  );
});

test('other work goes on while a long list is mapped and written', async () => {
  let turns = 0;
  const isDone = new AbortController();
  const others = (async () => {
    for (; !isDone.signal.aborted; turns++) await nextTurn();
  })();
  const mapped = await mapInTurns(
    Array.from({ length: 1_000 }, (_, index) => index),
    (index) => index * 2,
  );
  const afterMap = turns;
  const line = toJsonLine({ mapped });
  const pieces = typeof line === 'string' ? [] : await Array.fromAsync(line);
  isDone.abort();
  await others;
  expect(mapped.at(-1)).toBe(1_998);
  expect(afterMap).toBeGreaterThanOrEqual(9);
  expect(turns - afterMap).toBeGreaterThanOrEqual(9);
  expect(JSON.parse(pieces.join(''))).toEqual({ mapped });
});
