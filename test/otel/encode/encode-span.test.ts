import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, test } from 'vitest';
import { SCHEMA_URL, SCOPE_NAME } from '#otel/encode/attribute-names.ts';
import { encodeSpan, RecordEncoder } from '#otel/encode/encode-span.ts';
import { encodeResourceSpans, joinBatch } from '#otel/encode/resource-spans.ts';
import type { EndedRecord } from '#otel/queue/record-consumer.ts';
import { recordAttemptSpan } from '#otel/span/attempt-span.ts';
import { RecordProcessor } from '#otel/span/record-processor.ts';
import { createRequestSpans } from '#otel/span/request-span.ts';
import { SpanIdSource } from '#otel/span/trace-ids.ts';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '../records.ts';

const RESOURCE = resourceFromAttributes({
  'service.name': 'spangate',
  'host.cpu.count': 2,
  tags: ['a', 'b'],
});
const LINKED = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 3, isRemote: true };

/** The SDK's tracer, and the ended spans as a processor gets them. */
const source = new SpanIdSource();

function createTracer() {
  const ended: ReadableSpan[] = [];
  const spanProcessor = {
    onStart: () => undefined,
    onEnd: (span: ReadableSpan) => void ended.push(span),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const provider = new TracerProvider({ resource: RESOURCE, spanProcessors: [spanProcessor] });
  return { tracer: provider.getTracer(SCOPE_NAME, undefined, { schemaUrl: SCHEMA_URL }), ended };
}

/** Request spans from the SDK. */
function endSpans(): readonly ReadableSpan[] {
  const { tracer, ended } = createTracer();
  for (const record of [FULL_RECORD, LEAST_RECORD]) {
    const links = record === FULL_RECORD ? [{ context: LINKED }] : [];
    const span = tracer.startSpan('POST /v1/embeddings', { kind: SpanKind.SERVER, links }, ROOT_CONTEXT);
    span.addEvent('gateway.attempt_failed', { 'gateway.attempt': 1, 'error.type': 'refused "quoted"\u0000' });
    span.setAttributes(toAttributes(record, { scheme: 'http', serverPort: 8080 }));
    if (record === FULL_RECORD) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
  return ended;
}

/** The SDK writes integral doubles as ints. This turns the attributes that are known to be doubles back. */
function withOurNumbers(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json), (_name, value) => {
    if (typeof value?.key !== 'string' || value.value?.intValue === undefined) return value;
    const number = value.value.intValue;
    const isDouble = /_ms$|^gateway\.timings\./.test(value.key);
    return { key: value.key, value: isDouble ? { doubleValue: number } : { intValue: String(number) } };
  });
}

test('a batch equals the JSON of the SDK, except that doubles are doubles and int64 are strings', () => {
  const spans = endSpans();
  const ours = joinBatch(
    encodeResourceSpans(RESOURCE),
    spans.map((span) => Buffer.from(encodeSpan(span))),
  ).toString();
  const theirs = Buffer.from(JsonTraceSerializer.serializeRequest([...spans]) ?? []).toString();
  expect(JSON.parse(ours)).toEqual(withOurNumbers(JSON.parse(theirs)));
  expect(ours).toContain('{"key":"gateway.ttft_ms","value":{"doubleValue":31}}');
  expect(ours).toContain('{"key":"gateway.prompt_tokens","value":{"intValue":"120"}}');
});

test('a record with attempts equals the JSON of the SDK for all its spans', () => {
  const { tracer, ended } = createTracer();
  const span = tracer.startSpan('POST /v1/embeddings', { kind: SpanKind.SERVER }, ROOT_CONTEXT);
  for (const [index, url] of ['http://[::1]:8000/v1/embeddings', 'https://b/v1/embeddings'].entries()) {
    const attempt = { method: 'POST', ordinal: index + 1, replica: 'vllm-a', url } as const;
    const result = index === 0 ? { errorType: 'not_connected' } : { status: 200 };
    const times = { startedEpochMs: Date.now(), endedEpochMs: Date.now() + 1.5 };
    recordAttemptSpan({ tracer, ids: source }, span, {
      start: attempt,
      result,
      ids: source.drawIds(),
      ...times,
    });
  }
  span.setAttributes(toAttributes(FULL_RECORD, { scheme: 'http' })).end();
  const [first, second, request] = ended;
  if (first === undefined || second === undefined || request === undefined) throw new Error('no spans');

  const ours = joinBatch(encodeResourceSpans(RESOURCE), [
    new RecordEncoder().encode(request, [first, second]),
  ]).toString();
  const theirs = Buffer.from(JsonTraceSerializer.serializeRequest([request, first, second]) ?? []).toString();
  expect(JSON.parse(ours)).toEqual(withOurNumbers(JSON.parse(theirs)));
  expect(first.attributes).toMatchObject({ 'server.address': '::1', 'server.port': 8000 });
  expect(second.attributes).toMatchObject({ 'server.address': 'b', 'server.port': 443 });
});

test('a batch without spans has a resource and a scope', () => {
  expect(JSON.parse(joinBatch(encodeResourceSpans(RESOURCE), []).toString())).toMatchObject({
    resourceSpans: [{ scopeSpans: [{ scope: { name: 'spangate' }, spans: [] }] }],
  });
});

describe('a stock processor next to ours, with the stock exporter', () => {
  test('sends the same spans with the same attributes', async () => {
    const posted: string[] = [];
    const collector = createServer(async (request, response) => {
      posted.push(await text(request));
      response.end('{}');
    });
    await once(collector.listen(0, '127.0.0.1'), 'listening');
    const { port } = collector.address() as AddressInfo;
    const encoded: Buffer[] = [];
    const consumer = {
      begin: () => undefined,
      discard: () => undefined,
      consume: ({ encodedSpan }: EndedRecord) => void encoded.push(Buffer.from(encodedSpan ?? [])),
    };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const ids = new SpanIdSource();
    const stock = new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces` });
    const provider = new TracerProvider({
      idGenerator: ids,
      resource: RESOURCE,
      spanProcessors: [new RecordProcessor(consumer, log), new SimpleSpanProcessor({ exporter: stock })],
    });
    const tracer = provider.getTracer(SCOPE_NAME, undefined, { schemaUrl: SCHEMA_URL });
    const startSpan = createRequestSpans({ tracer, ids }, { attemptSpans: true });
    for (const record of [FULL_RECORD, LEAST_RECORD]) {
      const incomingTraceparent = `00-${LINKED.traceId}-${LINKED.spanId}-01`;
      const span = startSpan({ method: 'POST', route: '/v1/embeddings', incomingTraceparent });
      const attempt = {
        method: 'POST',
        ordinal: 1,
        replica: 'vllm-a',
        url: 'http://replica:8000/v1',
      } as const;
      span.startAttempt(attempt).end({ status: 200 });
      span.addFailedAttempt({
        attempt: 1,
        replica: 'vllm-a',
        code: 'not_connected',
        status: 503,
        durationMs: 2,
      });
      span.end(record, { scheme: 'https', serverAddress: 'gateway.example', serverPort: 8443 });
    }
    await provider.shutdown();
    collector.close();

    const ours = toSpans(joinBatch(encodeResourceSpans(RESOURCE), encoded).toString());
    const theirs = posted.flatMap((body) => toSpans(body));
    expect(theirs).toHaveLength(4);
    expect(withOurNumbers(theirs.toSorted(bySpanId))).toEqual(ours.toSorted(bySpanId));
  });
});

interface SentSpan {
  readonly spanId: string;
  readonly attributes: readonly unknown[];
}

function toSpans(body: string): readonly SentSpan[] {
  return JSON.parse(body).resourceSpans[0].scopeSpans[0].spans;
}

const bySpanId = (a: SentSpan, b: SentSpan) => a.spanId.localeCompare(b.spanId);
