import { once } from 'node:events';
import { Agent } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEnvelope } from '#otel/encode/envelope.ts';
import { createOtlpSink } from '#otel/export/otlp-exporter.ts';
import type { OtlpOptions } from '#otel/export/otlp-options.ts';
import { type FakeCollector, startFakeCollector } from '../support/fake-collector.ts';

const ENVELOPE = createEnvelope(resourceFromAttributes({ 'service.name': 'spangate' }));
const NEVER = new AbortController().signal;
const LINES = [Buffer.from('{"name":"a","attributes":[],"events":[]}')];

let collector: FakeCollector;
const agents: Agent[] = [];
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  await collector.close();
});

function createSink(options: Partial<OtlpOptions> = {}) {
  const agent = options.agent ?? new Agent({ keepAlive: true });
  agents.push(agent);
  const url = new URL('/v1/traces', collector.url);
  return createOtlpSink(
    {
      ...{ url, headers: { 'x-key': 'k' }, timeoutMs: 10_000, compression: 'none', ...options },
      ...{ agent, createAgent: async () => agent },
    },
    ENVELOPE,
  );
}

test('a batch is one POST with a length, the headers and all its spans', async () => {
  expect(await createSink().exportBatch([...LINES, ...LINES], NEVER)).toMatchObject({
    kind: 'taken',
    rejectedCount: 0,
  });
  const [call] = collector.calls;
  expect(call).toMatchObject({ path: '/v1/traces', headers: { 'x-key': 'k' } });
  expect(call?.headers['content-length']).toBe(String(call?.body.length));
  expect(collector.spans.map(({ name }) => name)).toEqual(['a', 'a']);
});

test('gzip goes out as gzip', async () => {
  await createSink({ compression: 'gzip' }).exportBatch(LINES, NEVER);
  expect(collector.calls[0]?.headers).toMatchObject({ 'content-encoding': 'gzip' });
  expect(collector.spans).toHaveLength(1);
});

test('a partial success tells how many were refused, and why', async () => {
  collector.answerNext({ body: '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}' });
  expect(await createSink().exportBatch(LINES, NEVER)).toEqual({
    kind: 'taken',
    rejectedCount: 1,
    message: 'too old',
  });
});

test.each([400, 413, 429, 500, 503])('status %i is told, with Retry-After and the reason', async (status) => {
  const headers = { 'retry-after': '2' };
  collector.answerNext({ status, headers, body: '{"message":"no"}' });
  expect(await createSink().exportBatch(LINES, NEVER)).toEqual({
    kind: 'answered',
    status,
    retryAfterMs: 2000,
    message: 'no',
  });
});

test('a redirect is an answer, not followed', async () => {
  collector.answerNext({ status: 307, headers: { location: `${collector.url}/elsewhere` } });
  expect(await createSink().exportBatch(LINES, NEVER)).toMatchObject({ kind: 'answered', status: 307 });
  expect(collector.calls).toHaveLength(1);
});

describe('no answer is told as such', () => {
  test('when nobody listens', async () => {
    await collector.close();
    expect(await createSink().exportBatch(LINES, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'ECONNREFUSED',
    });
  });

  test('when the connection is cut', async () => {
    collector.answerNext({ cut: true });
    expect(await createSink().exportBatch(LINES, NEVER)).toEqual({ kind: 'unanswered', code: 'ECONNRESET' });
  });

  test('when the connection is cut in the middle of a 200: it may have been a partial no', async () => {
    collector.answerNext((response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"partial', () => response.destroy());
    });
    expect(await createSink().exportBatch(LINES, NEVER)).toEqual({ kind: 'unanswered', code: 'ECONNRESET' });
  });

  test('when what answers is not HTTP', async () => {
    const server = createTcpServer((socket) => socket.end('SSH-2.0-x\r\n')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(await createSink({ url }).exportBatch(LINES, NEVER)).toMatchObject({ kind: 'unanswered' });
    server.close();
  });

  test('when the collector does not answer before the deadline', async () => {
    collector.answerNext(() => undefined);
    expect(await createSink({ timeoutMs: 50 }).exportBatch(LINES, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'timeout',
    });
  });

  test('when the collector trickles: the deadline is over the whole call', async () => {
    collector.answerNext((response) => {
      response.writeHead(200);
      const trickle = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(trickle));
    });
    expect(await createSink({ timeoutMs: 100 }).exportBatch(LINES, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'timeout',
    });
  });

  test('when the call is cut from our side', async () => {
    const cut = new AbortController();
    collector.answerNext(() => cut.abort());
    expect(await createSink().exportBatch(LINES, cut.signal)).toEqual({
      kind: 'unanswered',
      code: 'aborted',
    });
  });
});

test('a no that breaks off in its body is still that no', async () => {
  collector.answerNext((response) => {
    response.writeHead(400, { 'content-length': '100' });
    response.write('{"mess', () => response.destroy());
  });
  expect(await createSink().exportBatch(LINES, NEVER)).toMatchObject({ kind: 'answered', status: 400 });
});

test('no more than 4 MiB of an answer are read', async () => {
  collector.answerNext({ body: ' '.repeat(5 * 1024 * 1024) });
  expect(await createSink().exportBatch(LINES, NEVER)).toEqual({ kind: 'oversized' });
});

test('calls share one connection, those that were refused too', async () => {
  const ports = new Set<number | undefined>();
  const noteAndRefuse = (response: { socket: { remotePort?: number | undefined } | null }) =>
    ports.add(response.socket?.remotePort);
  const sink = createSink();
  for (const status of [200, 503, 200]) {
    collector.answerNext((response) => {
      noteAndRefuse(response);
      response.writeHead(status).end('{}');
    });
    await sink.exportBatch(LINES, NEVER);
  }
  expect(ports.size).toBe(1);
});
