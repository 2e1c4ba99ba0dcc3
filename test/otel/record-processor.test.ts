import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { SCOPE_NAME } from '#otel/encode/attribute-names.ts';
import { RecordProcessor } from '#otel/span/record-processor.ts';
import { createQuietLog } from './quiet-log.ts';

function createProcessor() {
  const log = createQuietLog();
  const lines: Uint8Array[] = [];
  const counts = { refused: 0 };
  const processor = new RecordProcessor(
    {
      begin() {},
      discard() {},
      put: (line) => void lines.push(line),
      refuse() {
        counts.refused += 1;
      },
    },
    log,
  );
  const provider = new TracerProvider({ spanProcessors: [processor] });
  return {
    ...{ lines, counts, log, processor },
    endSpan: (scope = SCOPE_NAME) => provider.getTracer(scope).startSpan('POST /v1/embeddings').end(),
  };
}

test('a span is handed over, encoded, the moment it ends', () => {
  const { lines, endSpan } = createProcessor();
  endSpan();
  expect(lines.map((line) => JSON.parse(Buffer.from(line).toString()))).toMatchObject([
    { name: 'POST /v1/embeddings' },
  ]);
});

test('a span of any other scope is no record', () => {
  const { lines, counts, endSpan } = createProcessor();
  endSpan('somebody-else');
  expect(lines).toEqual([]);
  expect(counts.refused).toBe(0);
});

test('a span that cannot be encoded is refused, logged without its content, and harms nobody', () => {
  const { counts, lines, processor, log } = createProcessor();
  const broken = {
    instrumentationScope: { name: SCOPE_NAME },
    spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
    get attributes(): never {
      throw new Error('broken');
    },
  };
  processor.onEnd(broken as unknown as ReadableSpan);
  expect(counts.refused).toBe(1);
  expect(lines).toEqual([]);
  expect(log.lines.map(({ level }) => level)).toEqual(['error']);
});
