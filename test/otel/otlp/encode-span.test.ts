import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EndedRecord } from '#otel/queue';
import { type RequestRecord, SCOPE } from '#otel/record/registry';
import { anyCharacter } from '#testkit/any-character.ts';
import { decodeMessage } from '#testkit/otlp/otlp-messages.ts';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '#testkit/records/records.ts';
import { runs } from '#testkit/runs.ts';
import { SpanEncoder } from '../../../otel/otlp/encode-span.ts';
import { toSpanJson } from '../../../otel/otlp/protobuf/span-to-json.ts';
import { encodeResourceSpans, joinBatch, joinJsonBatch } from '../../../otel/otlp/resource-spans.ts';
import { endAttemptSpan, startAttemptSpan } from '../../../otel/span/child-spans.ts';
import { RecordProcessor } from '../../../otel/span/record-processor.ts';
import { createRequestSpans } from '../../../otel/span/request-span.ts';
import { RandomIds } from '../../../otel/span/trace-ids.ts';
import { anyRecord } from '../record/any-record.ts';

const RESOURCE = resourceFromAttributes({
  'service.name': 'spangate',
  'host.cpu.count': 2,
  tags: ['a', 'b'],
});
const RESOURCE_SPANS = encodeResourceSpans(RESOURCE);
const LINKED = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 3, isRemote: true };
const HTTP = { scheme: 'http', serverPort: 8080 } as const;

/** Doubles with a fraction: the SDK writes integral ones as ints. */
const FRACTIONS = {
  ttft_ms: 31.5,
  e2e_ms: 85.25,
  gap_p50_ms: 12.125,
  queue_ms: 1e-9,
  cost: 0.25,
  route_prefix_share: 0.5,
  route_ruled_out: { drained: 1.5 },
  timings: { a: 0.1 },
};

/** The SDK's tracer, and the ended spans as a processor gets them. */
function createTracer() {
  const ended: ReadableSpan[] = [];
  const spanProcessor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const provider = new TracerProvider({ resource: RESOURCE, spanProcessors: [spanProcessor] });
  return { tracer: provider.getTracer(SCOPE.name, undefined, SCOPE), ended };
}

/** The spans of records, from the SDK. */
function endSpans(records: readonly RequestRecord[]): readonly ReadableSpan[] {
  const { tracer, ended } = createTracer();
  for (const record of records) {
    const links =
      record === FULL_RECORD ? [{ context: LINKED }, { context: LINKED, attributes: { a: 1 } }] : [];
    const span = tracer.startSpan('POST /v1/embeddings', { kind: SpanKind.SERVER, links }, ROOT_CONTEXT);
    span.addEvent('gateway.attempt_failed', { 'gateway.attempt': 1, 'error.type': 'refused "quoted"\u0000' });
    Object.assign(span, { attributes: toAttributes(record, HTTP) });
    if (record === FULL_RECORD) span.setStatus({ code: SpanStatusCode.ERROR, message: 'søk' });
    span.end();
  }
  return ended;
}

/** A span with any attributes. */
function endSpan(attributes: Attributes): ReadableSpan {
  const { tracer, ended } = createTracer();
  tracer.startSpan('any').setAttributes(attributes).end();
  const [span] = ended;
  if (span === undefined) throw new Error('no span');
  return span;
}

/** A batch as we encode it: the bytes of each call are copied, because the next call reuses them. */
function encodeBatch(spans: readonly ReadableSpan[], encoder = new SpanEncoder()): Buffer {
  return joinBatch(
    RESOURCE_SPANS,
    spans.map((span) => Buffer.from(encoder.encode(span))),
  );
}

const stockBytes = (spans: readonly ReadableSpan[]) =>
  Buffer.from(ProtobufTraceSerializer.serializeRequest([...spans]) ?? []);

/** The SDK writes integral doubles as ints. This turns the attributes that are known to be doubles back. */
function withOurNumbers(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json), (_name, value) => {
    if (typeof value?.key !== 'string' || value.value?.intValue === undefined) return value;
    const number = value.value.intValue;
    const isDouble = /_ms$|^gateway\.(?:timings|route\.ruled_out)\.|[._](?:cost|prefix_share)$/.test(
      value.key,
    );
    return {
      key: value.key,
      value: isDouble ? { doubleValue: Number(number) } : { intValue: String(number) },
    };
  });
}

describe('the bytes of a batch', () => {
  test('are those of the SDK', () => {
    const spans = endSpans([
      { ...FULL_RECORD, ...FRACTIONS },
      { ...LEAST_RECORD, ...FRACTIONS },
    ]);
    expect(encodeBatch(spans)).toEqual(stockBytes(spans));
  });

  test('differ from those of the SDK where a double is integral: it stays a double', () => {
    const spans = endSpans([FULL_RECORD, LEAST_RECORD]);
    const ours = decodeMessage('TracesData', encodeBatch(spans));
    expect(ours).toEqual(withOurNumbers(decodeMessage('TracesData', stockBytes(spans))));
    expect(JSON.stringify(ours)).toContain('{"key":"gateway.ttft_ms","value":{"doubleValue":31}}');
    expect(JSON.stringify(ours)).toContain('{"key":"gateway.prompt_tokens","value":{"intValue":"120"}}');
  });

  test('are those of the SDK for any record, whatever was encoded before it', () => {
    const encoder = new SpanEncoder();
    fc.assert(
      fc.property(anyRecord({ isFraction: true }), (record) => {
        const spans = endSpans([record]);
        expect(encodeBatch(spans, encoder).equals(stockBytes(spans))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test('are those of the SDK for any attributes', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('\ud800', 'a\udc00b', 'ü'.repeat(999)),
    );
    const number = fc.oneof(
      fc.maxSafeInteger(),
      fc.double({ noInteger: true }),
      fc.constantFrom(-1, 2 ** 31),
    );
    const value = fc.oneof(text, number, fc.boolean(), fc.array(text), fc.array(fc.maxSafeInteger()));
    fc.assert(
      fc.property(fc.dictionary(text, value), (attributes) => {
        const spans = [endSpan(attributes)];
        expect(encodeBatch(spans).equals(stockBytes(spans))).toBe(true);
      }),
    );
  });

  test('do not depend on the records before', () => {
    const reused = new SpanEncoder();
    fc.assert(
      fc.property(fc.array(anyRecord(), { minLength: 2, maxLength: 4 }), (records) => {
        for (const span of endSpans(records)) {
          expect(Buffer.from(reused.encode(span)).equals(new SpanEncoder().encode(span))).toBe(true);
        }
      }),
      { numRuns: runs(100) },
    );
  });

  test.each<{ what: string; change: Partial<RequestRecord> }>([
    { what: 'a text of the same length', change: { model: 'llama-3.3-71b' } },
    { what: 'a text with as many units but more bytes', change: { model: 'llama-3.3-7øb' } },
    { what: 'a longer text', change: { model: 'llama-3.3-70b-instruct' } },
    { what: 'a number with more bytes', change: { prompt_tokens: 300 } },
    { what: 'another double', change: { e2e_ms: 0.1 } },
    { what: 'a list with more items', change: { finish_reasons: ['stop', 'stop', 'stop'] } },
    { what: 'another flag', change: { stream: false } },
    {
      what: 'a record that does not fit into the memory',
      change: { prefix_hashes: new Array(4096).fill('x'.repeat(16)) },
    },
    {
      what: 'a record for which the memory is given back',
      change: { prefix_hashes: new Array(4096).fill('ü'.repeat(999)) },
    },
  ])('stay right after $what', ({ change }) => {
    const encoder = new SpanEncoder();
    const spans = endSpans([
      FULL_RECORD,
      { ...FULL_RECORD, ...change },
      FULL_RECORD,
      LEAST_RECORD,
      FULL_RECORD,
    ]);
    for (const span of spans) {
      expect(Buffer.from(encoder.encode(span)).equals(new SpanEncoder().encode(span))).toBe(true);
    }
  });

  test.each([
    { when: 'at its attributes', member: 'attributes', name: 'POST /v1/embeddings' },
    { when: 'before them', member: 'startTime', name: 'POST '.repeat(20) },
    { when: 'after them', member: 'status', name: 'POST' },
  ])('stay right after a span whose encoding failed $when', ({ member, name }) => {
    const encoder = new SpanEncoder();
    const [span] = endSpans([FULL_RECORD]);
    if (span === undefined) throw new Error('no span');
    const before = Buffer.from(encoder.encode(span));
    const broken = Object.create(span, {
      name: { value: name },
      [member]: {
        get() {
          throw new Error('broken');
        },
      },
    });
    expect(() => encoder.encode(broken)).toThrow('broken');
    expect(Buffer.from(encoder.encode(span))).toEqual(before);
  });

  test('stay right after attributes whose encoding failed, and after the span of no record', () => {
    const encoder = new SpanEncoder();
    const [full] = endSpans([FULL_RECORD]);
    if (full === undefined) throw new Error('no span');
    const before = Buffer.from(encoder.encode(full));
    const attributes = Object.defineProperty({ ...full.attributes }, 'gateway.model', {
      get() {
        throw new Error('broken');
      },
    });
    expect(() => encoder.encode(Object.create(full, { attributes: { value: attributes } }))).toThrow(
      'broken',
    );
    expect(Buffer.from(encoder.encode(full))).toEqual(before);
    encoder.encode(endSpan({ 'gateway.replica': 'x'.repeat(500) }));
    expect(Buffer.from(encoder.encode(full))).toEqual(before);
  });
});

describe('a record with attempts', () => {
  const { tracer, ended } = createTracer();
  const span = tracer.startSpan('POST /v1/embeddings', { kind: SpanKind.SERVER }, ROOT_CONTEXT);
  for (const [index, url] of ['http://[::1]:8000/v1/embeddings', 'https://b/v1/embeddings'].entries()) {
    const start = { method: 'POST', ordinal: index + 1, replica: 'vllm-a', url } as const;
    const result = index === 0 ? { errorType: 'not_connected' } : { status: 200 };
    const [startedEpochMs, endedEpochMs] = [Date.now(), Date.now() + 1.5];
    const attempt = startAttemptSpan(tracer, span, start, startedEpochMs);
    endAttemptSpan(attempt, { start, result, startedEpochMs, endedEpochMs });
  }
  Object.assign(span, { attributes: toAttributes({ ...FULL_RECORD, ...FRACTIONS }, HTTP) });
  span.end();
  const [first, second, request] = ended;
  if (first === undefined || second === undefined || request === undefined) throw new Error('no spans');

  test('is one piece with the bytes of the SDK for all its spans', () => {
    const encoded = new SpanEncoder().encode(request, [first, second]);
    expect(joinBatch(RESOURCE_SPANS, [encoded])).toEqual(stockBytes([request, first, second]));
    expect(first.attributes).toMatchObject({ 'server.address': '::1', 'server.port': 8000 });
    expect(second.attributes).toMatchObject({ 'server.address': 'b', 'server.port': 443 });
  });

  test('is as many spans in JSON', () => {
    const json = toSpanJson(new SpanEncoder().encode(request, [first, second]));
    const ours = joinJsonBatch(RESOURCE_SPANS, [Buffer.from(json ?? '')]).toString();
    const theirs = JsonTraceSerializer.serializeRequest([request, first, second]);
    expect(JSON.parse(ours)).toEqual(withOurNumbers(JSON.parse(Buffer.from(theirs ?? []).toString())));
  });
});

test('a batch without spans has a resource and a scope', () => {
  const empty = { resourceSpans: [{ scopeSpans: [{ scope: { name: 'spangate' }, spans: [] }] }] };
  expect(decodeMessage('TracesData', joinBatch(RESOURCE_SPANS, []))).toMatchObject(empty);
  expect(JSON.parse(joinJsonBatch(RESOURCE_SPANS, []).toString())).toMatchObject(empty);
});

test('every attribute of a record can be read from its span, as it is sent', () => {
  const attributes = toAttributes(FULL_RECORD, HTTP);
  expect(attributes['gateway.prefix_hashes']).toEqual(FULL_RECORD.prefix_hashes);
  expect('gateway.model' in attributes).toBe(true);
});

describe('a stock processor next to ours, with the stock exporter', () => {
  test('sends the same spans with the same attributes', async () => {
    const posted: Buffer[] = [];
    const collector = createServer(async (request, response) => {
      posted.push(await buffer(request));
      response.end();
    });
    await once(collector.listen(0, '127.0.0.1'), 'listening');
    const { port } = collector.address() as AddressInfo;
    const encoded: Buffer[] = [];
    const consumer = {
      begin: () => undefined,
      number: () => undefined,
      discard: () => undefined,
      consume: ({ encodedSpan }: EndedRecord) => void encoded.push(Buffer.from(encodedSpan ?? [])),
    };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const stock = new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces` });
    const provider = new TracerProvider({
      idGenerator: new RandomIds(),
      resource: RESOURCE,
      spanProcessors: [new RecordProcessor(consumer, log), new SimpleSpanProcessor({ exporter: stock })],
    });
    const tracer = provider.getTracer(SCOPE.name, undefined, SCOPE);
    const settings = { depth: 'attempts', genAi: 'pinned', number: () => undefined } as const;
    const startSpan = createRequestSpans(tracer, settings);
    for (const record of [FULL_RECORD, LEAST_RECORD]) {
      const incoming = {
        traceparent: `00-${LINKED.traceId}-${LINKED.spanId}-01`,
        tracestate: 'vendor=1',
        // One of the two is continued, the other linked.
        isTrusted: record === FULL_RECORD,
      };
      const span = startSpan({ method: 'POST', route: '/v1/embeddings', incoming });
      span.startOperation();
      const attempt = {
        method: 'POST',
        ordinal: 1,
        replica: 'vllm-a',
        url: 'http://replica:8000/v1',
      } as const;
      span.startAttempt(attempt).end({ status: 200 });
      const failed = {
        replica: 'vllm-a',
        failure: 'not_connected',
        status: 503,
        duration_ms: 2,
        after_ms: 3,
      };
      span.end(
        { ...record, failed_attempts: [failed] },
        { scheme: 'https', serverAddress: 'gateway.example', serverPort: 8443 },
      );
    }
    await provider.shutdown();
    collector.close();

    const ours = toSpans(joinBatch(RESOURCE_SPANS, encoded));
    const theirs = posted.flatMap((body) => toSpans(body));
    expect(theirs).toHaveLength(6);
    expect(withOurNumbers(theirs.toSorted(bySpanId))).toEqual(ours.toSorted(bySpanId));
  });
});

interface SentSpan {
  readonly spanId: string;
  readonly attributes: readonly unknown[];
}

interface SentBatch {
  readonly resourceSpans: readonly [
    { readonly scopeSpans: readonly [{ readonly spans: readonly SentSpan[] }] },
  ];
}

function toSpans(body: Uint8Array): readonly SentSpan[] {
  return (decodeMessage('TracesData', body) as SentBatch).resourceSpans[0].scopeSpans[0].spans;
}

const bySpanId = (a: SentSpan, b: SentSpan) => a.spanId.localeCompare(b.spanId);
