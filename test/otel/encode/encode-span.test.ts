import { ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { SCHEMA_URL, SCOPE_NAME } from '#otel/encode/attribute-names.ts';
import { encodeRecord, encodeSpan } from '#otel/encode/encode-span.ts';
import { encodeResourceSpans, joinBatch } from '#otel/encode/resource-spans.ts';
import { recordAttemptSpan } from '#otel/span/attempt-span.ts';
import { SpanIdSource } from '#otel/span/trace-ids.ts';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '../records.ts';

const RESOURCE = resourceFromAttributes({
  'service.name': 'spangate',
  'host.cpu.count': 2,
  tags: ['a', 'b'],
});
const LINKED = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 3, isRemote: true };

/** The SDK's tracer, and the spans that ended, as the processor gets them. */
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

/** Spans of requests, made by the SDK itself. */
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

/** The SDK writes ints as numbers and integral doubles as ints: what is known to be a double is one here. */
function withOurNumbers(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json), (_name, value) => {
    if (typeof value?.key !== 'string' || value.value?.intValue === undefined) return value;
    const number = value.value.intValue;
    const isDouble = /_ms$|^gateway\.timings\./.test(value.key);
    return { key: value.key, value: isDouble ? { doubleValue: number } : { intValue: String(number) } };
  });
}

test('a batch is the JSON the SDK would have sent, but that doubles are doubles and int64 are strings', () => {
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

test('a record with attempts is the JSON the SDK would have sent of all its spans', () => {
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

  const ours = joinBatch(encodeResourceSpans(RESOURCE), [encodeRecord(request, [first, second])]).toString();
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
