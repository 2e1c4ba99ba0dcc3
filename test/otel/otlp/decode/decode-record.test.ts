import { type Attributes, ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '#testkit/records/records.ts';
import { runs } from '#testkit/runs.ts';
import { decodeRecords } from '../../../../otel/otlp/decode/decode-file-line.ts';
import { decodeRecord, RecordDecoder } from '../../../../otel/otlp/decode/record-decoder.ts';
import { SpanEncoder } from '../../../../otel/otlp/encode-span.ts';
import { toSpanJson } from '../../../../otel/otlp/protobuf/span-to-json.ts';
import { encodeResourceSpans, joinJsonBatch } from '../../../../otel/otlp/resource-spans.ts';
import { endAttemptSpan, startAttemptSpan } from '../../../../otel/span/child-spans.ts';
import { encodeFields, encodeRecord } from '../../encoded-spans.ts';
import { anyRecord } from '../../record/any-record.ts';

/** Ends a span with these attributes, as the processor gets it; with `attempts` of them, which are returned too. */
function endSpans(attributes: Attributes, attempts = 0): readonly [ReadableSpan, ...ReadableSpan[]] {
  const ended: ReadableSpan[] = [];
  const spanProcessor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const tracer = new TracerProvider({ spanProcessors: [spanProcessor] }).getTracer('any');
  const span = tracer.startSpan('POST /v1/embeddings', { kind: SpanKind.SERVER }, ROOT_CONTEXT);
  for (let ordinal = 1; ordinal <= attempts; ordinal += 1) {
    const start = { method: 'POST', ordinal, replica: 'a', url: 'http://a/v1/embeddings' } as const;
    const [startedEpochMs, endedEpochMs] = [Date.now(), Date.now()];
    const attempt = startAttemptSpan(tracer, span, start, startedEpochMs);
    endAttemptSpan(attempt, { start, result: { status: 200 }, startedEpochMs, endedEpochMs });
  }
  span.setAttributes(attributes).end();
  const request = ended.pop();
  if (request === undefined) throw new Error('no span');
  return [request, ...ended];
}

/** A span with the attributes of a record. The bytes are a copy. */
const encode = (of: RequestRecord) =>
  Buffer.from(new SpanEncoder().encode(endSpans(toAttributes(of, { scheme: 'http' }))[0]));

/** One line of a file that `export.to: file` writes. */
const exportLine = (encodedSpans: readonly Uint8Array[]) =>
  joinJsonBatch(
    encodeResourceSpans(resourceFromAttributes({ 'service.name': 'spangate' })),
    encodedSpans.map((encodedSpan) => Buffer.from(toSpanJson(encodedSpan) ?? '')),
  );

test('what was encoded is decoded as it was, for any record', () => {
  fc.assert(
    fc.property(anyRecord(), (any) => {
      expect(decodeRecord(encode(any))).toEqual(any);
    }),
  );
});

test('records one after the other in a message are decoded as each alone, whatever is before them', () => {
  fc.assert(
    fc.property(fc.array(anyRecord(), { minLength: 2, maxLength: 4 }), (records) => {
      const spans = records.map(encode);
      const decoder = new RecordDecoder(Buffer.concat(spans));
      let at = 0;
      const decoded = spans.map(({ length }) => {
        at += length;
        return decoder.decode(at - length, at);
      });
      expect(decoded).toEqual(records);
    }),
  );
});

test('an encoded span with those of its attempts is one record, that of the request', () => {
  const [request, ...attempts] = endSpans(toAttributes(FULL_RECORD, { scheme: 'http' }), 2);
  const encodedSpan = new SpanEncoder().encode(request, attempts);
  expect(decodeRecord(encodedSpan)).toEqual(FULL_RECORD);
  expect(decodeRecords(exportLine([encodedSpan, encode(LEAST_RECORD)]))).toEqual([FULL_RECORD, LEAST_RECORD]);
});

test('the failed attempts among the events of the span are decoded with the record', () => {
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const attempt = [text('gateway.replica', 'a'), text('error.type', 'loading')];
  const duration = { key: 'gateway.duration_ms', value: { doubleValue: 1.5 } };
  const status = { key: 'http.response.status_code', value: { intValue: 503 } };
  const name = 'gateway.attempt_failed';
  const startTimeUnixNano = '1700000000000000000';
  const events = [
    { name, timeUnixNano: '1700000000002000000', attributes: [...attempt, status, duration] },
    { name, timeUnixNano: '1700000001000500000', attributes: [...attempt, duration] },
    // Not one of ours: without a duration, of another name, and no event at all.
    { name, attributes: attempt },
    { name: 'exception', attributes: [...attempt, duration] },
    {},
  ];
  expect(decodeRecord(encodeRecord(LEAST_RECORD, { startTimeUnixNano, events }))).toEqual({
    ...LEAST_RECORD,
    failed_attempts: [
      { replica: 'a', failure: 'loading', status: 503, duration_ms: 1.5, after_ms: 2 },
      { replica: 'a', failure: 'loading', status: null, duration_ms: 1.5, after_ms: 1000.5 },
    ],
  });
});

test('a batch in a file is its records in their order', () => {
  expect(decodeRecords(exportLine([encode(LEAST_RECORD), encode(FULL_RECORD)]))).toEqual([
    LEAST_RECORD,
    FULL_RECORD,
  ]);
  expect(decodeRecords(exportLine([]))).toEqual([]);
});

test("a Collector's ways of writing the same are understood: int64 as a number, absent empty lists", () => {
  const theirs = exportLine([encode({ ...FULL_RECORD, finish_reasons: [] })])
    .toString()
    .replaceAll(/"intValue":"(\d+)"/g, '"intValue":$1')
    .replace('{"arrayValue":{"values":[]}}', '{"arrayValue":{}}');
  expect(decodeRecords(theirs)).toEqual([{ ...FULL_RECORD, finish_reasons: [] }]);
});

test("an engine's own names of timings stay members, whatever they are", () => {
  const timings = Object.fromEntries([
    ['__proto__', 1],
    ['constructor', 2],
    ['', 3],
  ]);
  const decoded = decodeRecord(encode({ ...LEAST_RECORD, timings }));
  expect(Object.entries(decoded?.timings ?? {})).toEqual(Object.entries(timings));
});

/** A list in a list in a list. */
const nested = (depth: number): object =>
  depth === 0 ? { boolValue: true } : { arrayValue: { values: [nested(depth - 1)] } };

test.each<[string, Uint8Array]>([
  ['nothing', Buffer.alloc(0)],
  ['an encoded span that was cut', encode(LEAST_RECORD).subarray(0, -1)],
  ['text', Buffer.from('{"name":"POST"}')],
  ['an endless varint', Buffer.alloc(20, 0xff)],
  ['a length beyond the end', Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x0f])],
  ['another message', Buffer.from([0x0a, 0])],
  [
    'another span',
    new SpanEncoder().encode(endSpans({ 'gateway.replica': 'a', 'gateway.was_drained': true })[0]),
  ],
  ['a span without attributes', encodeFields({ name: 'POST' })],
  ['attributes without values', encodeFields({ attributes: [{ key: 'gateway.status' }, {}] })],
  ['lists in lists without end', encodeFields({ attributes: [{ key: 'a', value: nested(20) }] })],
])('%s is no record', (_what, encodedSpan) => {
  expect(decodeRecord(encodedSpan)).toBeNull();
});

test('any bytes are a record or none, and never an error', () => {
  const encoded = encode(FULL_RECORD);
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.record({ at: fc.nat(encoded.length - 1), byte: fc.nat(255) }).map(({ at, byte }) => {
      const damaged = Uint8Array.from(encoded);
      damaged[at] = byte;
      return damaged;
    }),
  );
  fc.assert(
    fc.property(bytes, (any) => {
      expect(() => decodeRecord(any)).not.toThrow();
    }),
    { numRuns: runs(1000) },
  );
});

test('a record whose required field has another type is none', () => {
  const line = exportLine([encode(LEAST_RECORD)]).toString();
  expect(decodeRecords(line)).toEqual([LEAST_RECORD]);
  expect(decodeRecords(line.replace('{"intValue":"200"}', '{"stringValue":"200"}'))).toEqual([]);
  expect(decodeRecords(line.replace('{"intValue":"200"}', '{"intValue":"2e99"}'))).toEqual([]);
});

test('an optional field of another type is left out', () => {
  const line = exportLine([encode(FULL_RECORD)]).toString();
  const { model: _model, ...others } = FULL_RECORD;
  expect(decodeRecords(line.replace('{"stringValue":"llama-3.3-70b"}', '{"intValue":"3"}'))).toEqual([
    others,
  ]);
});

test('a line of a file that is no TracesData is told from one without records', () => {
  expect(decodeRecords('{"resourceSpans":[]}')).toEqual([]);
  expect(decodeRecords('{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"GET"}]}]}]}')).toEqual([]);
  for (const line of [
    '',
    '{"resourceMetrics":[]}',
    '[]',
    exportLine([encode(LEAST_RECORD)]).subarray(0, -9),
  ]) {
    expect(decodeRecords(line)).toBeNull();
  }
});
