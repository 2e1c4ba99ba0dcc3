import { expect, test } from 'vitest';
import { createIdGenerator, toTraceparent } from '#otel/trace-ids.ts';

test('ids are lower-case hex of their lengths, and no two are the same', () => {
  const ids = createIdGenerator();
  const traceIds = Array.from({ length: 2000 }, () => ids.generateTraceId());
  const spanIds = Array.from({ length: 2000 }, () => ids.generateSpanId());
  expect(traceIds.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  expect(spanIds.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  expect(new Set([...traceIds, ...spanIds]).size).toBe(4000);
});

test('a traceparent has version 00, both ids and the flags', () => {
  expect(toTraceparent({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }, '01')).toBe(
    `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  );
});
