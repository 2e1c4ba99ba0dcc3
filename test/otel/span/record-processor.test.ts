import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import type { EndedRecord } from '#otel/queue';
import { toRequestAttributes } from '#otel/record';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { RecordProcessor } from '../../../otel/span/record-processor.ts';
import { nameOf } from '../encoded-spans.ts';

function createProcessor() {
  const log = createQuietLog();
  const consumed: EndedRecord[] = [];
  const processor = new RecordProcessor(
    { number: () => undefined, begin() {}, discard() {}, consume: (ended) => void consumed.push(ended) },
    log,
  );
  const provider = new TracerProvider({ spanProcessors: [processor] });
  return {
    consumed,
    log,
    processor,
    endSpan(attributes = toRequestAttributes(LEAST_RECORD, { scheme: 'http' })) {
      provider.getTracer('any').startSpan('POST /v1/embeddings').setAttributes(attributes).end();
    },
  };
}

test('a span is passed on, encoded and with its record, as soon as it ends', () => {
  const { consumed, endSpan } = createProcessor();
  endSpan();
  expect(consumed.map(({ record }) => record)).toEqual([LEAST_RECORD]);
  expect(consumed.map(({ encodedSpan }) => nameOf(encodedSpan ?? new Uint8Array()))).toEqual([
    'POST /v1/embeddings',
  ]);
});

test('a span without the fields of a record is none', () => {
  const { consumed, endSpan } = createProcessor();
  endSpan({ 'gateway.replica': 'a' });
  expect(consumed).toEqual([]);
});

test('a span that cannot be encoded is passed on as such, logged without its content, and harms no request', () => {
  const { consumed, processor, log } = createProcessor();
  const broken = {
    attributes: toRequestAttributes(LEAST_RECORD, { scheme: 'http' }),
    events: [],
    spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
    get status(): never {
      throw new Error('broken');
    },
  } as unknown as ReadableSpan;
  processor.onEnd(broken);
  expect(consumed).toEqual([{ record: LEAST_RECORD, encodedSpan: null }]);
  expect(log.lines.map(({ level }) => level)).toEqual(['error']);
});
