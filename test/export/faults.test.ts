import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { type CollectorScript, type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The size of a batch; the interval never ends. */
const BATCH = 4;
const EXPORT = { batch_size: BATCH, interval: '1h', retry: { initial: '1ms', max: '5ms' } };

let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  [replica, collector] = await Promise.all([startFakeReplica(), startFakeCollector()]);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([replica.close(), collector.close()]);
});

interface StartOptions {
  readonly target?: { readonly url: string };
  readonly queueSize?: number;
  /** How long a shutdown waits for the collector. */
  readonly flush?: string;
}

const start = ({ target = collector, queueSize = 100, flush = '0s' }: StartOptions = {}) =>
  startGateway({
    replicas: [replica],
    collector: target,
    config: { export: { ...EXPORT, queue_size: queueSize }, shutdown: { flush } },
  });

/** A batch of requests, all answered when it resolves. */
async function serveBatch(gateway: StartedGateway, count = BATCH): Promise<void> {
  const responses = await Promise.all(Array.from({ length: count }, () => gateway.chat()));
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 200));
  await Promise.all(responses.map((response) => response.arrayBuffer()));
}

/** Resolves when the counters are as expected; until then, they always add up. */
async function untilStats(gateway: StartedGateway, expected: object): Promise<void> {
  await expect
    .poll(async () => {
      const stats = await gateway.stats();
      const { recorded = 0, restored = 0, exported = 0, dropped = 0, rejected = 0, queued = 0 } = stats;
      const { spooled = 0, lost = 0 } = stats;
      expect(recorded + restored).toBe(exported + dropped + rejected + queued + spooled + lost);
      return stats;
    })
    .toMatchObject(expected);
}

const trickle = (response: ServerResponse): void => {
  response.writeHead(200);
  const drip = setInterval(() => response.write(' '), 5);
  response.on('close', () => clearInterval(drip));
};
const cutInTheMiddle = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('{"partial', () => response.destroy());
};
const retryAfter = (status: number, value: string): CollectorScript => ({
  status,
  headers: { 'retry-after': value },
});

describe('a collector that fails for a while causes failed calls but loses no record:', () => {
  test.each<{ fault: string; scripts: readonly CollectorScript[]; timeoutMs?: number }>([
    { fault: 'it hangs', scripts: [() => undefined], timeoutMs: 1_500 },
    { fault: 'it trickles', scripts: [trickle], timeoutMs: 1_500 },
    { fault: 'it cuts the connection', scripts: [{ cut: true }] },
    { fault: 'it cuts its answer', scripts: [cutInTheMiddle] },
    { fault: 'it answers 429 at once', scripts: [retryAfter(429, '0')] },
    { fault: 'it answers 503 with a date', scripts: [retryAfter(503, 'Sun, 06 Nov 1994 08:49:37 GMT')] },
    { fault: 'it answers 429 with nonsense', scripts: [retryAfter(429, 'soon'), retryAfter(429, '-1')] },
    { fault: 'it redirects', scripts: [{ status: 302, headers: { location: '/login' } }, { status: 307 }] },
    { fault: 'it answers 502, 503, 504', scripts: [{ status: 502 }, { status: 503 }, { status: 504 }] },
  ])('$fault', async ({ scripts, timeoutMs = 10_000 }) => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', String(timeoutMs));
    await using gateway = await start();
    collector.answerNext(...scripts);
    await serveBatch(gateway);
    await untilStats(gateway, { exported: BATCH, queued: 0, rejected: 0, failed_calls: scripts.length });
    expect(collector.calls).toHaveLength(scripts.length + 1);
  });

  test('it redirects for a while, and the log says what to change', async () => {
    await using gateway = await start();
    collector.answerAlways({ status: 308 });
    await serveBatch(gateway);
    const line = JSON.parse(await gateway.untilLogged('collector_away'));
    collector.answerAlways({});
    await untilStats(gateway, { exported: BATCH, rejected: 0 });
    expect(line).toMatchObject({ reason: 'http_308', advice: expect.stringContaining('redirects') });
  });

  test('nothing listens for a while', async () => {
    const { port } = collector;
    await collector.close();
    await using gateway = await start();
    await serveBatch(gateway);
    await expect.poll(async () => (await gateway.stats()).failed_calls).toBeGreaterThan(2);
    await untilStats(gateway, { exported: 0, queued: BATCH });
    collector = await startFakeCollector(port);
    await untilStats(gateway, { exported: BATCH, queued: 0 });
  });

  test('what listens does not speak HTTP', async () => {
    await using stranger = await listenTcp((socket) => socket.end('SSH-2.0-x\r\n'));
    await using gateway = await start({ target: stranger });
    await serveBatch(gateway);
    await expect.poll(async () => (await gateway.stats()).failed_calls).toBeGreaterThan(2);
    await untilStats(gateway, { exported: 0, queued: BATCH });
  });
});

describe('a collector that rejects a batch for good gets one call:', () => {
  test.each([400, 401, 404, 500])('status %i', async (status) => {
    await using gateway = await start();
    collector.answerNext({ status });
    await serveBatch(gateway);
    await untilStats(gateway, { rejected: BATCH, queued: 0, failed_calls: 1 });
    await serveBatch(gateway);
    await untilStats(gateway, { rejected: BATCH, exported: BATCH, queued: 0, failed_calls: 1 });
  });

  test('one record of it, by partial success, which is no failed call', async () => {
    await using gateway = await start();
    collector.answerNext({ body: '{"partialSuccess":{"rejectedSpans":1}}' });
    await serveBatch(gateway);
    await untilStats(gateway, { rejected: 1, exported: BATCH - 1, failed_calls: 0 });
  });
});

test('an answer of 200 that is not OTLP means that the batch was accepted', async () => {
  await using gateway = await start();
  collector.answerNext({ body: '<html>' });
  await serveBatch(gateway);
  await untilStats(gateway, { exported: BATCH, failed_calls: 0 });
});

test('a repetition after a lost answer carries the same spans', async () => {
  await using gateway = await start();
  collector.answerNext(cutInTheMiddle);
  await serveBatch(gateway);
  await collector.waitFor(({ calls }) => calls.length === 2);
  const [first, second] = collector.calls.map(({ spans }) => spans.map(({ spanId }) => spanId));
  expect(second).toEqual(first);
});

describe('a batch larger than the collector accepts arrives in parts', () => {
  /** Three records of this test are larger than this, two are smaller. */
  const LIMIT_BYTES = 2800;
  const isTooLarge = (length: string | undefined) => Number(length) > LIMIT_BYTES;

  test('when it answers 413', async () => {
    await using gateway = await start();
    collector.answerAlways((response) => {
      response.writeHead(isTooLarge(response.req.headers['content-length']) ? 413 : 200).end('{}');
    });
    await serveBatch(gateway);
    await untilStats(gateway, { exported: BATCH, rejected: 0, queued: 0, failed_calls: 1 });
    expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(BATCH);
  });

  test('when it only resets the connection, without reading on', async () => {
    await using server = await listenTcp((socket) => {
      let seen = '';
      socket.on('data', (chunk: Buffer) => {
        seen += chunk.toString('latin1');
        const headEnd = seen.indexOf('\r\n\r\n');
        if (headEnd === -1) return;
        const length = /content-length: (\d+)/i.exec(seen.slice(0, headEnd))?.[1];
        if (isTooLarge(length)) socket.resetAndDestroy();
        else if (seen.length - headEnd - 4 === Number(length)) {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
          seen = '';
        }
      });
    });
    await using gateway = await start({ target: server });
    await serveBatch(gateway);
    await untilStats(gateway, { exported: BATCH, rejected: 0, queued: 0 });
  });
});

test('no request waits for a collector that hangs, with the queue full or not', async () => {
  await using gateway = await start({ queueSize: 2 * BATCH });
  collector.answerAlways(() => undefined);
  for (let round = 0; round < 5; round += 1) await serveBatch(gateway);
  await untilStats(gateway, { recorded: 5 * BATCH, queued: 2 * BATCH, dropped: 3 * BATCH, exported: 0 });
  expect(collector.calls).toHaveLength(1);
  expect(collector.calls[0]?.status).toBeUndefined();
});

test('a shutdown does not wait as long as a collector asks for', async () => {
  await using gateway = await start({ flush: '5s' });
  collector.answerNext(retryAfter(503, '99999999999'));
  await serveBatch(gateway);
  await untilStats(gateway, { failed_calls: 1, queued: BATCH });
  expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  expect(collector.spans).toHaveLength(BATCH);
});

test('batches are compressed when the variable says so', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_COMPRESSION', 'gzip');
  await using gateway = await start();
  await serveBatch(gateway);
  await untilStats(gateway, { exported: BATCH });
  expect(collector.calls[0]?.headers['content-encoding']).toBe('gzip');
});

describe('a collector with a private authority that asks for a client certificate', () => {
  test.each([
    { having: 'both', isTrusted: true, hasClient: true, expected: { exported: BATCH } },
    { having: 'no client certificate', isTrusted: true, hasClient: false, expected: { exported: 0 } },
    { having: 'no authority', isTrusted: false, hasClient: true, expected: { exported: 0 } },
  ])(
    'gets records from a gateway that has $having: $expected',
    async ({ isTrusted, hasClient, expected }) => {
      await using authority = await createAuthority();
      const [server, client] = await Promise.all([authority.issue('server'), authority.issue('client')]);
      const { cert, key } = server;
      await using https = await listening(
        createHttpsServer({ cert, key, ca: authority.ca.cert, requestCert: true }, (_request, response) =>
          response.end('{}'),
        ),
      );
      if (isTrusted) vi.stubEnv('OTEL_EXPORTER_OTLP_CERTIFICATE', authority.ca.certPath);
      if (hasClient) {
        vi.stubEnv('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', client.certPath);
        vi.stubEnv('OTEL_EXPORTER_OTLP_CLIENT_KEY', client.keyPath);
      }
      await using gateway = await start({ target: { url: https.url.replace('http:', 'https:') } });
      await serveBatch(gateway);
      if (expected.exported === 0)
        await expect.poll(async () => (await gateway.stats()).failed_calls).toBeGreaterThan(1);
      await untilStats(gateway, expected);
    },
  );
});

async function listening(server: Server): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

const listenTcp = (onConnection: (socket: Socket) => void) => listening(createTcpServer(onConnection));
