import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { SCOPE_NAME } from '#otel/attribute-names.ts';
import { DropLog } from '#otel/drop-log.ts';
import { createExportCounters } from '#otel/export-stats.ts';
import { createRecordQueue } from '#otel/queued-record.ts';
import { RecordProcessor } from '#otel/record-processor.ts';
import { createQuietLog } from './quiet-log.ts';
import { VirtualClock } from './virtual-clock.ts';

function createProcessor(capacity: number) {
  const queue = createRecordQueue({ capacity, capacityBytes: 1_000_000 });
  const counters = createExportCounters();
  const log = createQuietLog();
  const lines: Uint8Array[] = [];
  let queuedCount = 0;
  const processor = new RecordProcessor({
    queue,
    counters,
    clock: new VirtualClock(),
    log,
    dropLog: new DropLog(queue, log),
    onLine: (line) => lines.push(line),
    onQueued: () => {
      queuedCount += 1;
    },
  });
  const provider = new TracerProvider({ spanProcessors: [processor] });
  return {
    queue,
    lines,
    counters,
    log,
    processor,
    queuedCount: () => queuedCount,
    endSpan: (scope = SCOPE_NAME) => provider.getTracer(scope).startSpan('POST /v1/embeddings').end(),
  };
}

test('a span is in the queue, encoded, the moment it ends', () => {
  const { queue, counters, endSpan, queuedCount } = createProcessor(4);
  endSpan();
  const [record] = queue.peek(1);
  expect(JSON.parse(Buffer.from(record?.line ?? []).toString())).toMatchObject({
    name: 'POST /v1/embeddings',
  });
  expect(counters.recorded).toBe(1);
  expect(queuedCount()).toBe(1);
});

test('whoever wants the lines gets each, that of a dropped record too', () => {
  const { queue, lines, endSpan } = createProcessor(1);
  endSpan();
  endSpan();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toBe(queue.peek(1)[0]?.line);
});

test('a span of any other scope is no record', () => {
  const { queue, counters, endSpan } = createProcessor(4);
  endSpan('somebody-else');
  expect(queue.size).toBe(0);
  expect(counters.recorded).toBe(0);
});

test('a full queue drops the new record, counts it and says so once', () => {
  const { queue, counters, endSpan, log } = createProcessor(4);
  for (let index = 0; index < 7; index += 1) endSpan();
  expect(counters).toMatchObject({ recorded: 7, dropped: 3 });
  expect(queue.size).toBe(4);
  expect(log.lines.map(({ level }) => level)).toEqual(['warn']);
});

test('a span that cannot be encoded is counted as rejected and harms nobody', () => {
  const { counters, processor, log } = createProcessor(4);
  const broken = {
    instrumentationScope: { name: SCOPE_NAME },
    spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
    get attributes(): never {
      throw new Error('broken');
    },
  };
  processor.onEnd(broken as unknown as ReadableSpan);
  expect(counters).toMatchObject({ recorded: 1, rejected: 1 });
  expect(log.lines.map(({ level }) => level)).toEqual(['error']);
});
