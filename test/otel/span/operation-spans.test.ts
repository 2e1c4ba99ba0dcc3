import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CollectedSpan, type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerJson,
  answerStream,
  chatChunk,
  DONE,
  hang,
  refusedUrlBeside,
  startFakeReplica,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { type ConfiguredReplica, startGateway } from '#testkit/start-gateway.ts';

let collector: FakeCollector;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await collector.close();
});

const start = (replicas: readonly ConfiguredReplica[], spans = 'operation') =>
  startGateway({ replicas, collector, config: { trace: { spans } } });

/** The spans of the only record: the request's, and that of its operation. */
async function untilSpans(): Promise<readonly [CollectedSpan, CollectedSpan | undefined]> {
  await collector.waitFor(({ spans }) => spans.length > 0);
  const [request, operation] = collector.spans;
  if (request === undefined) throw new Error('no record');
  return [request, operation];
}

describe('with trace.spans: operation', () => {
  test('a CLIENT span below the request’s has what the conventions say of GenAI, and goes upstream', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);

    await (await gateway.chat()).arrayBuffer();

    const [request, operation] = await untilSpans();
    expect(operation).toMatchObject({
      name: 'chat m',
      kind: SpanKind.CLIENT + 1,
      parentSpanId: request.spanId,
    });
    expect(collector.spans).toHaveLength(2);
    const { hostname, port } = new URL(replica.url);
    expect(operation?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'm',
      'gen_ai.usage.input_tokens': 11,
      'server.address': hostname,
      'server.port': Number(port),
      'peer.service': 'a',
    });
    expect(Object.keys(operation?.attributes ?? {}).filter((name) => name.startsWith('gateway.'))).toEqual(
      [],
    );
    expect(Object.keys(request.attributes).filter((name) => name.startsWith('gen_ai.'))).toEqual([]);
    expect(request.attributes).toMatchObject({ 'gateway.model': 'm', 'gateway.prompt_tokens': 11 });
    const [traceparent] = (await replica.nextRequest()).header('traceparent');
    expect(traceparent).toBe(`00-${request.traceId}-${operation?.spanId}-01`);
  });

  test('it covers all attempts, which send its context, and is no error if one of them succeeds', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await start([{ name: 'a', url: refusedUrlBeside(replica) }, replica]);

    await (await gateway.chat()).arrayBuffer();

    const [request, operation] = await untilSpans();
    expect(collector.spans).toHaveLength(2);
    expect(request.attributes['gateway.attempts']).toBe(2);
    expect(operation?.attributes['peer.service']).toBe('b');
    expect(operation?.status.code).toBe(SpanStatusCode.UNSET);
    expect(BigInt(operation?.startTimeUnixNano ?? 0)).toBeGreaterThanOrEqual(
      BigInt(request.startTimeUnixNano),
    );
    expect(operation?.endTimeUnixNano).toBe(request.endTimeUnixNano);
  });

  test.each([
    ['429', 429, SpanStatusCode.UNSET],
    ['500', 500, SpanStatusCode.ERROR],
  ])('a %s of the replica is an error of the operation', async (errorType, status, statusOfRequest) => {
    await using replica = await startFakeReplica({ name: 'a', script: answerJson({}, { status }) });
    await using gateway = await start([replica]);

    await (await gateway.chat()).arrayBuffer();

    const [request, operation] = await untilSpans();
    expect(request.status.code).toBe(statusOfRequest);
    expect(operation?.status.code).toBe(SpanStatusCode.ERROR);
    expect(operation?.attributes['error.type']).toBe(errorType);
  });

  test('an operation for which no replica could be tried has failed, without an address', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);

    await gateway.chat({ model: 'unknown' });

    const [, operation] = await untilSpans();
    expect(operation).toMatchObject({ name: 'chat unknown', status: { code: SpanStatusCode.ERROR } });
    expect(operation?.attributes['error.type']).toBe('model_not_found');
    expect(operation?.attributes).not.toHaveProperty('server.address');
    expect(operation?.attributes).not.toHaveProperty('peer.service');
  });

  test('a client that leaves is no error of it', async () => {
    await using replica = await startFakeReplica({ name: 'a', script: hang });
    await using gateway = await start([replica]);
    const leaving = new AbortController();
    const response = gateway.chat({}, { signal: leaving.signal }).catch(() => 'left');
    await replica.untilRequests(1);
    leaving.abort();
    await response;

    const [, operation] = await untilSpans();
    expect(operation?.status.code).toBe(SpanStatusCode.UNSET);
    expect(operation?.attributes).not.toHaveProperty('error.type');
  });

  test('a body that cannot be read has none', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await start([replica]);

    await gateway.post('/v1/chat/completions', 'not JSON');

    const [request, operation] = await untilSpans();
    expect(request.attributes['gateway.status']).toBe(400);
    expect(operation).toBeUndefined();
  });
});

test.each(['server', 'operation'])(
  'OTEL_SEMCONV_STABILITY_OPT_IN chooses the newest names with trace.spans: %s',
  async (spans) => {
    vi.stubEnv('OTEL_SEMCONV_STABILITY_OPT_IN', 'http, gen_ai_latest_experimental');
    const script = answerStream([chatChunk('Hi', 'stop'), usageChunk(3, 1), DONE]);
    await using replica = await startFakeReplica({ name: 'a', script });
    await using gateway = await start([replica], spans);

    await (
      await gateway.chat({ stream: true, reasoning_effort: 'low', previous_response_id: 'resp_1' })
    ).arrayBuffer();

    const all = await untilSpans();
    const { attributes = {}, types = {} } = all[spans === 'server' ? 0 : 1] ?? {};
    const record = await gateway.nextRecord();
    expect(record.reasoning_level).toBe('low');
    expect(attributes).toMatchObject({
      'gen_ai.request.reasoning.level': 'low',
      'gen_ai.request.previous_response.id': 'resp_1',
      'gen_ai.response.time_to_first_chunk': (record.ttft_ms ?? 0) / 1000,
    });
    expect(types['gen_ai.response.time_to_first_chunk']).toBe('doubleValue');
  },
);

test.each([
  [{ reasoning_effort: 'high' }, 'high'],
  [{ reasoning: { effort: 'medium', summary: 'auto' } }, 'medium'],
  [{ output_config: { effort: 'max' } }, 'max'],
  [{ reasoning: 'high' }, undefined],
  [{ reasoning_effort: 3 }, undefined],
  [{ reasoning_effort: 'x'.repeat(65) }, undefined],
])('the reasoning level of %j is %s', async (body, level) => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await start([replica], 'server');
  await (await gateway.chat(body)).arrayBuffer();
  expect((await gateway.nextRecord()).reasoning_level).toBe(level);
});
