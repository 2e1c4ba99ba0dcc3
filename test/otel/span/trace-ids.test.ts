import { expect, test } from 'vitest';
import { SpanIdSource, toTraceparent } from '../../../otel/span/trace-ids.ts';

const times = (count: number, draw: () => string) => Array.from({ length: count }, draw);

test('ids are lower-case hex of their lengths, and no two are the same', () => {
  const source = new SpanIdSource();
  const drawn = Array.from({ length: 1000 }, () => source.drawIds());
  const traceIds = [...drawn.map(({ traceId }) => traceId), ...times(1000, () => source.generateTraceId())];
  const spanIds = [
    ...drawn.map(({ spanId }) => spanId),
    ...times(500, () => source.generateSpanId()),
    ...times(500, () => source.drawSpanId()),
  ];
  expect(traceIds.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  expect(spanIds.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  expect(new Set([...traceIds, ...spanIds]).size).toBe(4000);
});

test('the SDK gets the ids that were assigned, and nobody else does', () => {
  const source = new SpanIdSource();
  const ids = source.drawIds();
  source.assign(ids);
  expect({ traceId: source.generateTraceId(), spanId: source.generateSpanId() }).toEqual(ids);
  expect(source.drawIds().traceId).not.toBe(ids.traceId);
  expect(source.drawSpanId()).not.toBe(ids.spanId);
});

test('a traceparent has version 00, both ids and the flags', () => {
  expect(toTraceparent({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }, '01')).toBe(
    `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  );
});
