import { type Attributes, ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RECORD_FIELDS } from '#otel/encode/attribute-names.ts';
import { decodeRecord, decodeRecords } from '#otel/encode/decode-record.ts';
import { encodeSpan, RecordEncoder } from '#otel/encode/encode-span.ts';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { encodeResourceSpans, joinBatch } from '#otel/encode/resource-spans.ts';
import { recordAttemptSpan } from '#otel/span/attempt-span.ts';
import { SpanIdSource } from '#otel/span/trace-ids.ts';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '../records.ts';

/** Values of each type that the encoder takes whole. */
const text = (maxLength = 256) => fc.string({ unit: 'binary', maxLength: maxLength / 2 });
const double = fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 });
const VALUES = {
  string: text(),
  int: fc.maxSafeInteger(),
  double,
  bool: fc.boolean(),
  strings: fc.array(text()),
  doubles: fc.dictionary(text(64), double, { minKeys: 1, maxKeys: 64 }),
};

/** Any record, with each field of the registry, the optional ones here and there. */
const record = fc.record<Partial<RequestRecord>>(
  {
    ...Object.fromEntries(Object.entries(RECORD_FIELDS).map(([field, { type }]) => [field, VALUES[type]])),
    truncated: fc.constant(true as const),
  },
  { requiredKeys: Object.keys(LEAST_RECORD) as (keyof RequestRecord)[] },
) as fc.Arbitrary<RequestRecord>;

const source = new SpanIdSource();

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
    const times = { startedEpochMs: Date.now(), endedEpochMs: Date.now() };
    const attempt = { start, result: { status: 200 }, ids: source.drawIds(), ...times };
    recordAttemptSpan({ tracer, ids: source }, span, attempt);
  }
  span.setAttributes(attributes).end();
  const request = ended.pop();
  if (request === undefined) throw new Error('no span');
  return [request, ...ended];
}

const encode = (of: RequestRecord) =>
  Buffer.from(encodeSpan(endSpans(toAttributes(of, { scheme: 'http' }))[0]));

/** One line of a file that `export.to: file` writes. */
const exportLine = (lines: readonly Uint8Array[]) =>
  joinBatch(encodeResourceSpans(resourceFromAttributes({ 'service.name': 'spangate' })), lines);

test('what was encoded is decoded as it was, for any record', () => {
  fc.assert(
    fc.property(record, (any) => {
      expect(decodeRecord(encode(any))).toEqual(any);
    }),
  );
});

test('the bytes and the text of an encoded span are the same record', () => {
  const encodedSpan = encode(FULL_RECORD);
  expect(decodeRecord(encodedSpan)).toEqual(FULL_RECORD);
  expect(decodeRecord(Buffer.from(encodedSpan).toString())).toEqual(FULL_RECORD);
});

test('an encoded span with those of its attempts is one record, that of the request', () => {
  const [request, ...attempts] = endSpans(toAttributes(FULL_RECORD, { scheme: 'http' }), 2);
  const encodedSpan = new RecordEncoder().encode(request, attempts);
  expect(decodeRecord(encodedSpan)).toEqual(FULL_RECORD);
  expect(decodeRecords(exportLine([encodedSpan, encode(LEAST_RECORD)]))).toEqual([FULL_RECORD, LEAST_RECORD]);
});

test('the failed attempts among the events of the span are decoded with the record', () => {
  const encodedSpan = encode(LEAST_RECORD).toString();
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const attempt = [text('gateway.replica', 'a'), text('error.type', 'loading')];
  const duration = { key: 'gateway.duration_ms', value: { doubleValue: 1.5 } };
  const status = { key: 'http.response.status_code', value: { intValue: '503' } };
  const name = 'gateway.attempt_failed';
  const events = [
    { name, attributes: [...attempt, status, duration] },
    { name, attributes: [...attempt, duration] },
    // Not one of ours: without a duration, of another name, and no event at all.
    { name, attributes: attempt },
    { name: 'exception', attributes: [...attempt, duration] },
    null,
  ];
  expect(decodeRecord(encodedSpan.replace('"events":[]', `"events":${JSON.stringify(events)}`))).toEqual({
    ...LEAST_RECORD,
    failed_attempts: [
      { replica: 'a', failure: 'loading', status: 503, duration_ms: 1.5 },
      { replica: 'a', failure: 'loading', status: null, duration_ms: 1.5 },
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

test.each([
  ['nothing', ''],
  ['an encoded span that was cut', Buffer.from(encode(LEAST_RECORD)).subarray(0, -1)],
  ['no JSON', '\u0000'],
  ['another span', encodeSpan(endSpans({ 'gateway.replica': 'a', 'gateway.was_drained': true })[0])],
  ['a span without attributes', '{"name":"POST"}'],
  ['attributes that are no list', '{"attributes":{"key":"gateway.status"}}'],
  ['a value that is none', '{"attributes":[{"key":"gateway.status","value":200},null,7]}'],
  ['a number', '7'],
])('%s is no record', (_what, encodedSpan) => {
  expect(decodeRecord(encodedSpan)).toBeNull();
});

test('a record whose required field has another type is none', () => {
  const encodedSpan = Buffer.from(encode(LEAST_RECORD)).toString();
  expect(decodeRecord(encodedSpan.replace('{"intValue":"200"}', '{"stringValue":"200"}'))).toBeNull();
  expect(decodeRecord(encodedSpan.replace('{"intValue":"200"}', '{"intValue":"2e99"}'))).toBeNull();
});

test('an optional field of another type is left out', () => {
  const encodedSpan = Buffer.from(encode(FULL_RECORD)).toString();
  const { model: _model, ...others } = FULL_RECORD;
  expect(decodeRecord(encodedSpan.replace('{"stringValue":"llama-3.3-70b"}', '{"intValue":"3"}'))).toEqual(
    others,
  );
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
