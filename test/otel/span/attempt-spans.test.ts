import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { toSpanJson } from '#otel/otlp';
import type { EndedRecord } from '#otel/queue';
import { type CollectedSpan, type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  hang,
  partial,
  refusedUrlBeside,
  resetAfterRequest,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { type ConfiguredReplica, startGateway } from '#testkit/start-gateway.ts';
import { RecordProcessor } from '../../../otel/span/record-processor.ts';
import { createRequestSpans } from '../../../otel/span/request-span.ts';
import { RandomIds } from '../../../otel/span/trace-ids.ts';
import { createTracer } from '../../../otel/span/tracer.ts';

/** The protocol counts kinds from 1, the API from 0. */
const SERVER = SpanKind.SERVER + 1;
const CLIENT = SpanKind.CLIENT + 1;

let collector: FakeCollector;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(() => collector.close());

const start = (
  replicas: readonly ConfiguredReplica[],
  config: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
) => startGateway({ replicas, collector, config: { trace: { spans: 'attempts' }, ...config } });

/** The spans of the collector's record number `count`, which is the last: the request's, its operation's and its attempts'. */
async function untilRecord(count = 1): Promise<{
  request: CollectedSpan;
  operation: CollectedSpan | undefined;
  attempts: readonly CollectedSpan[];
}> {
  const requestsOf = (spans: readonly CollectedSpan[]) => spans.filter(({ kind }) => kind === SERVER);
  await collector.waitFor(({ spans }) => requestsOf(spans).length === count);
  const request = requestsOf(collector.spans)[count - 1];
  if (request === undefined) throw new Error('no record');
  const below = collector.spans.filter((span) => span.traceId === request.traceId && span !== request);
  const operation = below.find(({ parentSpanId }) => parentSpanId === request.spanId);
  return { request, operation, attempts: below.filter((span) => span !== operation) };
}

const traceparentOf = ({ traceId, spanId }: CollectedSpan) => `00-${traceId}-${spanId}-01`;

describe('with trace.spans: attempts', () => {
  test('an attempt is a child of the operation, which is a child of the request, and the traceparent upstream is the attempt’s', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);

    await (await gateway.chat()).arrayBuffer();

    const { request, operation, attempts } = await untilRecord();
    expect(attempts).toHaveLength(1);
    const [attempt] = attempts;
    expect(operation).toMatchObject({ name: 'chat m', kind: CLIENT, parentSpanId: request.spanId });
    expect(attempt).toMatchObject({ name: 'POST', kind: CLIENT, parentSpanId: operation?.spanId });
    expect(request.parentSpanId).toBeUndefined();
    const [received] = await replica.untilRequests(1);
    expect(received?.header('traceparent')).toEqual(attempts.map(traceparentOf));
    expect(request.attributes['gateway.trace_id']).toBe(attempt?.traceId);
  });

  test('it has the attributes of an HTTP client, the replica as its peer, no model and no usage', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([{ name: 'a', url: `${replica.url}/prefix` }]);

    await gateway.post('/v1/chat/completions?api_key=secret', { model: 'm', messages: [] });

    const { operation, attempts } = await untilRecord();
    const { hostname, port } = new URL(replica.url);
    expect(attempts[0]?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'url.full': `${replica.url}/prefix/v1/chat/completions`,
      'server.address': hostname,
      'server.port': Number(port),
      'peer.service': 'a',
    });
    expect(operation?.attributes).toMatchObject({
      'gen_ai.request.model': 'm',
      'gen_ai.usage.input_tokens': 11,
    });
  });

  test('a replica skipped is an attempt of its own, without a status', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await start([{ name: 'a', url: refusedUrlBeside(replica) }, replica]);

    await (await gateway.chat()).arrayBuffer();

    const { request, attempts } = await untilRecord();
    expect(attempts.map(({ attributes }) => attributes['peer.service'])).toEqual(['a', 'b']);
    expect(attempts.map(({ attributes }) => attributes['http.request.resend_count'])).toEqual([undefined, 1]);
    expect(attempts[0]?.attributes).toMatchObject({ 'error.type': 'not_connected' });
    expect(attempts[0]?.attributes).not.toHaveProperty('http.response.status_code');
    expect(attempts.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
    expect(request.status.code).toBe(SpanStatusCode.UNSET);
    expect(request.attributes['gateway.attempts']).toBe(2);
    expect(request.events).toHaveLength(1);
  });

  test('a repeat is an attempt of its own, with a traceparent of its own', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);
    await (await gateway.chat()).arrayBuffer();
    replica.answerOnce(resetAfterRequest);

    await (await gateway.chat()).arrayBuffer();

    const { attempts } = await untilRecord(2);
    const [, ...received] = await replica.untilRequests(3);
    expect(received.flatMap((request) => request.header('traceparent'))).toEqual(attempts.map(traceparentOf));
    expect(attempts.map(({ attributes }) => attributes['error.type'])).toEqual(['reset_on_reuse', undefined]);
    expect(new Set(attempts.map(({ parentSpanId }) => parentSpanId)).size).toBe(1);
  });

  test('a refusal of our stream options tells the status that the replica answered', async () => {
    await using replica = await startFakeReplica({
      name: 'a',
      script: answerStream([chatChunk('Hi'), chatChunk('', 'stop'), DONE]),
    });
    replica.answerOnce(answerJson({ error: 'unknown field stream_options' }, { status: 400 }));
    await using gateway = await start([replica]);

    await (await gateway.chat({ stream: true })).arrayBuffer();

    const { attempts } = await untilRecord();
    expect(attempts.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([400, 200]);
    expect(attempts[0]?.attributes['error.type']).toBe('usage_refused');
  });

  test('a retried status is an attempt of its own, with the status that the replica answered', async () => {
    await using a = await startFakeReplica({ name: 'a', script: answerJson({}, { status: 503 }) });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await start([a, b], { retry: { statuses: [503] } });

    await (await gateway.chat()).arrayBuffer();

    const { request, attempts } = await untilRecord();
    expect(attempts.map(({ attributes }) => attributes['peer.service'])).toEqual(['a', 'b']);
    expect(attempts.map(({ attributes }) => attributes['http.response.status_code'])).toEqual([503, 200]);
    expect(attempts.map(({ attributes }) => attributes['error.type'])).toEqual(['status_retried', undefined]);
    expect(request.attributes['gateway.attempts']).toBe(2);
    expect(request.events[0]?.attributes).toMatchObject({
      'gateway.replica': 'a',
      'error.type': 'status_retried',
      'http.response.status_code': 503,
    });
  });

  test.each<{
    ending: string;
    script: Script;
    expected: { status?: number; errorType?: string; isRequestError: boolean };
  }>([
    {
      ending: 'a 429 is an error of the attempt, not of the request',
      script: answerJson({}, { status: 429 }),
      expected: { status: 429, errorType: '429', isRequestError: false },
    },
    {
      ending: 'a 500 is an error of both',
      script: answerJson({}, { status: 500 }),
      expected: { status: 500, errorType: '500', isRequestError: true },
    },
    {
      ending: 'a connection reset before the answer is an error of both',
      script: resetAfterRequest,
      expected: { errorType: 'upstream_failed', isRequestError: true },
    },
    {
      ending: 'a stream that breaks off is an error of both',
      script: partial('text/event-stream', [chatChunk('Hi')], 'reset'),
      expected: { status: 200, errorType: 'upstream_failed', isRequestError: true },
    },
    {
      ending: 'a stream that ends unfinished is an error of both',
      script: answerStream([chatChunk('Hi')]),
      expected: { status: 200, errorType: '_OTHER', isRequestError: true },
    },
  ])('$ending', async ({ script, expected: { status, errorType, isRequestError } }) => {
    await using replica = await startFakeReplica({ name: 'a', script });
    await using gateway = await start([replica]);

    await (await gateway.chat({ stream: true })).arrayBuffer();

    const { request, attempts } = await untilRecord();
    expect(attempts).toHaveLength(1);
    expect(attempts[0]?.attributes['http.response.status_code']).toBe(status);
    expect(attempts[0]?.attributes['error.type']).toBe(errorType);
    expect(attempts[0]?.status.code).toBe(SpanStatusCode.ERROR);
    expect(request.status.code).toBe(isRequestError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET);
  });

  test('a client that leaves is no error of the attempt', async () => {
    await using replica = await startFakeReplica({ name: 'a', script: hang });
    await using gateway = await start([replica]);
    const leaving = new AbortController();
    const response = gateway.chat({}, { signal: leaving.signal }).catch(() => 'left');
    await replica.untilRequests(1);
    leaving.abort();
    await response;

    const { request, attempts } = await untilRecord();
    expect(request.attributes['gateway.error_type']).toBe('client_closed');
    expect(attempts).toHaveLength(1);
    expect(attempts[0]?.status.code).toBe(SpanStatusCode.UNSET);
    expect(attempts[0]?.attributes).not.toHaveProperty('error.type');
    expect(attempts[0]?.attributes).not.toHaveProperty('http.response.status_code');
  });

  test('a request that no replica was tried for has none', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);

    await gateway.chat({ model: 'unknown' });

    const { attempts } = await untilRecord();
    expect(attempts).toEqual([]);
  });

  test('attempts travel in the call of their record, and the counters count records', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await start([{ name: 'a', url: refusedUrlBeside(replica) }, replica], {
      export: { batch_size: 4, interval: '1m' },
    });

    for (let i = 0; i < 4; i++) await (await gateway.chat()).arrayBuffer();
    await collector.waitFor(({ calls }) => calls[0]?.status === 200);

    // The turn is left after the one that served, so that each request begins with the one that refuses.
    expect(collector.calls).toHaveLength(1);
    expect(collector.spans.map(({ kind }) => kind)).toEqual(
      Array.from({ length: 4 }, () => [SERVER, CLIENT, CLIENT, CLIENT]).flat(),
    );
    expect(await gateway.stats()).toMatchObject({ recorded: 4 });
  });

  test.each([
    { rejectedSpans: 1, rejected: 1 },
    { rejectedSpans: 2, rejected: 2 },
    { rejectedSpans: 8, rejected: 2 },
    { rejectedSpans: 1000, rejected: 2 },
  ])(
    'of 2 records whose collector rejects $rejectedSpans spans, $rejected count as rejected',
    async (given) => {
      const { rejectedSpans, rejected } = given;
      const held = Promise.withResolvers<void>();
      collector.answerNext(
        { body: JSON.stringify({ partialSuccess: { rejectedSpans } }) },
        { after: held.promise },
      );
      await using replica = await startFakeReplica({ name: 'b' });
      await using gateway = await start([{ name: 'a', url: refusedUrlBeside(replica) }, replica], {
        export: { batch_size: 2, interval: '1m' },
      });

      for (let i = 0; i < 2; i++) await (await gateway.chat()).arrayBuffer();
      // One export at a time: when the second comes, the answer to the first is counted.
      for (let i = 0; i < 2; i++) await (await gateway.chat()).arrayBuffer();
      await collector.waitFor(({ calls }) => calls.length === 2);

      const stats = await gateway.stats();
      held.resolve();
      expect(stats).toMatchObject({ recorded: 4, exported: 2 - rejected, rejected, queued: 2 });
    },
  );
});

/** Starts the span of a request; `spans` are those that became a record of it. */
function startSpan() {
  const encodedSpans: Uint8Array[] = [];
  const consume = ({ encodedSpan }: EndedRecord) => void encodedSpans.push(Buffer.from(encodedSpan ?? ''));
  const processor = new RecordProcessor(
    { number: () => undefined, begin() {}, discard() {}, consume },
    createQuietLog(),
  );
  const settings = { depth: 'attempts', genAi: 'pinned', number: () => undefined } as const;
  const start = createRequestSpans(createTracer(processor, new RandomIds()), settings);
  const request = start({ method: 'POST', route: '/v1/completions' });
  request.startOperation();
  return {
    request,
    spans: () => JSON.parse(`[${encodedSpans.map((each) => toSpanJson(each)).join()}]`),
  };
}

const attempt = { method: 'POST', ordinal: 1, replica: 'a', url: 'http://a/v1/completions' } as const;

test('spans have the times at which things happened, though they end when all is over', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_000_000 });
  onTestFinished(() => void vi.useRealTimers());
  const { request, spans } = startSpan();
  vi.advanceTimersByTime(10);
  const failed = request.startAttempt(attempt);
  vi.advanceTimersByTime(20);
  failed.end({ errorType: 'not_connected' });
  vi.advanceTimersByTime(500);
  const attempts = [{ replica: 'a', failure: 'not_connected', status: null, duration_ms: 1, after_ms: 30 }];
  request.end({ ...LEAST_RECORD, e2e_ms: 42.5, failed_attempts: attempts }, { scheme: 'http' });

  const [made, madeOperation, madeAttempt] = spans();
  expect(made).toMatchObject({ startTimeUnixNano: '1000000000000', endTimeUnixNano: '1000042500000' });
  expect(made.events).toMatchObject([{ timeUnixNano: '1000030000000' }]);
  expect(madeOperation).toMatchObject({
    startTimeUnixNano: '1000000000000',
    endTimeUnixNano: '1000042500000',
  });
  expect(madeAttempt).toMatchObject({ startTimeUnixNano: '1000010000000', endTimeUnixNano: '1000030000000' });
  expect([made, madeAttempt].map(traceparentOf)).toEqual([request.traceparent, failed.traceparent]);
});

test('an attempt that is never ended leaves no span: its replica was drained before anything was sent', () => {
  const { request, spans: spansOf } = startSpan();
  request.startAttempt(attempt);
  const served = request.startAttempt({ ...attempt, replica: 'b' });
  served.end({ status: 200 });
  served.end({ errorType: 'upstream_failed' });
  request.end(LEAST_RECORD, { scheme: 'http' });

  const spans = spansOf();
  expect(spans.map(({ kind }: CollectedSpan) => kind)).toEqual([SERVER, CLIENT, CLIENT]);
  expect(spans[2].status.code).toBe(SpanStatusCode.UNSET);
  expect(served.traceparent).toBe(traceparentOf(spans[2]));
});

test('by default no attempt is a span, and the traceparent upstream is the request’s', async () => {
  await using replica = await startFakeReplica({ name: 'b' });
  await using gateway = await start([{ name: 'a', url: refusedUrlBeside(replica) }, replica], { trace: {} });

  await (await gateway.chat()).arrayBuffer();

  const { request, attempts } = await untilRecord();
  expect(attempts).toEqual([]);
  const [received] = await replica.untilRequests(1);
  expect(received?.header('traceparent')).toEqual([traceparentOf(request)]);
  expect(request.attributes['gateway.attempts']).toBe(2);
});
