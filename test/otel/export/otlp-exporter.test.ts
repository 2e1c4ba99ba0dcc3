import { once } from 'node:events';
import { Agent } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OtlpOptions } from '#otel/collector';
import { CONTENT_TYPES } from '#otel/collector';
import { encodeResourceSpans } from '#otel/otlp';
import { blockThread } from '#testkit/block-thread.ts';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { encodeMessage } from '#testkit/otlp/otlp-messages.ts';
import { createOtlpExporter } from '../../../otel/export/otlp-exporter.ts';
import { encodeName } from '../encoded-spans.ts';

const RESOURCE_SPANS = encodeResourceSpans(resourceFromAttributes({ 'service.name': 'spangate' }));
const NEVER = new AbortController().signal;
const ENCODED_SPANS = [encodeName('a')];

let collector: FakeCollector;
const agents: Agent[] = [];
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.destroy();
  await collector.close();
});

function createExporter(options: Partial<OtlpOptions> = {}) {
  const agent = options.agent ?? new Agent({ keepAlive: true });
  agents.push(agent);
  const url = new URL('/v1/traces', collector.url);
  const { protocol = 'http/protobuf' } = options;
  const headers = async () => ({ 'x-key': 'k', 'content-type': CONTENT_TYPES[protocol] });
  return createOtlpExporter(
    {
      url,
      protocol,
      headers,
      timeoutMs: 10_000,
      compression: 'none',
      ...options,
      agent,
      createAgent: async () => agent,
    },
    RESOURCE_SPANS,
  );
}

describe.each(['http/protobuf', 'http/json'] as const)('%s', (protocol) => {
  test('a batch is one POST with a length, the headers and all its spans', async () => {
    const exporter = createExporter({ protocol });
    expect(await exporter.exportBatch([...ENCODED_SPANS, ...ENCODED_SPANS], NEVER)).toMatchObject({
      kind: 'taken',
      rejectedCount: 0,
    });
    const [call] = collector.calls;
    expect(call).toMatchObject({
      path: '/v1/traces',
      headers: { 'x-key': 'k', 'content-type': CONTENT_TYPES[protocol] },
    });
    expect(call?.headers['content-length']).toBe(String(call?.bytes.length));
    expect(collector.spans.map(({ name }) => name)).toEqual(['a', 'a']);
    expect(collector.spans[0]?.resource).toEqual({ 'service.name': 'spangate' });
  });

  test('bodies that become shorter and longer have just their own spans', async () => {
    const exporter = createExporter({ protocol });
    const batches = [
      ['a'.repeat(100_000), 'b'],
      ['c'],
      ['d', 'e'.repeat(300_000), 'f'],
      ['g'.repeat(100_000), 'h'],
    ];
    for (const names of batches) {
      const outcome = await exporter.exportBatch(names.map(encodeName), NEVER);
      expect(outcome).toMatchObject({ kind: 'taken', rejectedCount: 0 });
    }
    expect(collector.spans.map(({ name }) => name)).toEqual(batches.flat());
  });

  test('with compression, the body is gzip', async () => {
    await createExporter({ protocol, compression: 'gzip' }).exportBatch(ENCODED_SPANS, NEVER);
    expect(collector.calls[0]?.headers).toMatchObject({ 'content-encoding': 'gzip' });
    expect(collector.spans).toHaveLength(1);
  });

  test.each([
    ['JSON', '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}'],
    [
      'protobuf',
      encodeMessage('ExportTraceServiceResponse', {
        partialSuccess: { rejectedSpans: 1, errorMessage: 'too old' },
      }),
    ],
  ])('a partial success in %s says how many spans were rejected, and why', async (_form, body) => {
    collector.answerNext({ body });
    expect(await createExporter({ protocol }).exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'taken',
      rejectedCount: 1,
      message: 'too old',
    });
  });

  test('an answer without a type has that of the request', async () => {
    const partialSuccess = { rejectedSpans: 3 };
    const body =
      protocol === 'http/json'
        ? JSON.stringify({ partialSuccess })
        : encodeMessage('ExportTraceServiceResponse', { partialSuccess });
    collector.answerNext((response) => response.end(body));
    expect(await createExporter({ protocol }).exportBatch(ENCODED_SPANS, NEVER)).toMatchObject({
      rejectedCount: 3,
    });
  });
});

test('in JSON, what is no span is left out and counts as rejected', async () => {
  const batch = [...ENCODED_SPANS, Buffer.from('no span'), encodeName('b')];
  expect(await createExporter({ protocol: 'http/json' }).exportBatch(batch, NEVER)).toMatchObject({
    kind: 'taken',
    rejectedCount: 1,
  });
  expect(collector.spans.map(({ name }) => name)).toEqual(['a', 'b']);
});

test.each([400, 413, 429, 500, 503])(
  'status %i is returned with Retry-After and the reason',
  async (status) => {
    const headers = { 'retry-after': '2' };
    collector.answerNext({ status, headers, body: '{"message":"no"}' });
    expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'answered',
      status,
      retryAfterMs: 2000,
      message: 'no',
    });
  },
);

test('a redirect is an answer and is not followed', async () => {
  collector.answerNext({ status: 307, headers: { location: `${collector.url}/elsewhere` } });
  expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toMatchObject({
    kind: 'answered',
    status: 307,
  });
  expect(collector.calls).toHaveLength(1);
});

describe('there is no answer', () => {
  test('when nothing listens at the address', async () => {
    await collector.close();
    expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'ECONNREFUSED',
    });
  });

  test('when the connection is cut', async () => {
    collector.answerNext({ cut: true });
    expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'ECONNRESET',
    });
  });

  test('when the connection is cut in the body of a 200, which may be a partial success', async () => {
    collector.answerNext((response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"partial', () => response.destroy());
    });
    expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'ECONNRESET',
    });
  });

  test('when the server does not speak HTTP', async () => {
    const server = createTcpServer((socket) => socket.end('SSH-2.0-x\r\n')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect(await createExporter({ url }).exportBatch(ENCODED_SPANS, NEVER)).toMatchObject({
      kind: 'unanswered',
    });
    server.close();
  });

  test('when the collector does not answer before the deadline', async () => {
    collector.answerNext(() => undefined);
    expect(await createExporter({ timeoutMs: 50 }).exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'timeout',
    });
  });

  test('but not if the answer came while the event loop stood still beyond the deadline', async () => {
    collector.answerNext((response) => {
      response.writeHead(200).end();
      blockThread(600);
    });
    expect(await createExporter({ timeoutMs: 500 }).exportBatch(ENCODED_SPANS, NEVER)).toMatchObject({
      kind: 'taken',
    });
  });

  test('when the collector sends its answer byte by byte: the deadline covers the whole call', async () => {
    collector.answerNext((response) => {
      response.writeHead(200);
      const trickle = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(trickle));
    });
    expect(await createExporter({ timeoutMs: 100 }).exportBatch(ENCODED_SPANS, NEVER)).toEqual({
      kind: 'unanswered',
      code: 'timeout',
    });
  });

  test('when the gateway aborts the call', async () => {
    const cut = new AbortController();
    collector.answerNext(() => cut.abort());
    expect(await createExporter().exportBatch(ENCODED_SPANS, cut.signal)).toEqual({
      kind: 'unanswered',
      code: 'aborted',
    });
  });
});

test('a failure status counts even if its body breaks off', async () => {
  collector.answerNext((response) => {
    response.writeHead(400, { 'content-length': '100' });
    response.write('{"mess', () => response.destroy());
  });
  expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toMatchObject({
    kind: 'answered',
    status: 400,
  });
});

test('at most 4 MiB of an answer are read', async () => {
  collector.answerNext({ body: ' '.repeat(5 * 1024 * 1024) });
  expect(await createExporter().exportBatch(ENCODED_SPANS, NEVER)).toEqual({ kind: 'oversized' });
});

test('calls share one connection, also after a rejection', async () => {
  const ports = new Set<number | undefined>();
  const noteAndRefuse = (response: { socket: { remotePort?: number | undefined } | null }) =>
    ports.add(response.socket?.remotePort);
  const exporter = createExporter();
  for (const status of [200, 503, 200]) {
    collector.answerNext((response) => {
      noteAndRefuse(response);
      response.writeHead(status).end('{}');
    });
    await exporter.exportBatch(ENCODED_SPANS, NEVER);
  }
  expect(ports.size).toBe(1);
});
