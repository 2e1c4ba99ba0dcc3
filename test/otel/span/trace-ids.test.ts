import { expect, test } from 'vitest';
import { KnownIds, RandomIds, toTraceparent } from '../../../otel/span/trace-ids.ts';

const times = (count: number, draw: () => string) => Array.from({ length: count }, draw);

test('ids are lower-case hex of their lengths, and no two are the same', () => {
  const source = new RandomIds();
  const traceIds = times(2000, () => source.generateTraceId());
  const spanIds = times(2000, () => source.generateSpanId());
  expect(traceIds.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  expect(spanIds.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  expect(new Set([...traceIds, ...spanIds]).size).toBe(4000);
});

test('spans that began elsewhere get their ids again, in their order', () => {
  const ids = new KnownIds('a'.repeat(32), ['b'.repeat(16), 'c'.repeat(16)]);
  expect([ids.generateSpanId(), ids.generateTraceId(), ids.generateSpanId()]).toEqual([
    'b'.repeat(16),
    'a'.repeat(32),
    'c'.repeat(16),
  ]);
});

test('a traceparent has version 00, both ids and the flags', () => {
  expect(toTraceparent({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }, '01')).toBe(
    `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  );
});
