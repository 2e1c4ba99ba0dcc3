import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { EventLog } from '#testkit/event-log.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { FAULTS, SAYS_NOTHING, startFaultyServer } from '#testkit/servers/faulty-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** A collector that accepts everything. Passes on the path and the body of each call. */
function takeAll(calls: EventLog<{ path: string; body: string }>) {
  return async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString();
    calls.push({ path: request.url ?? '', body });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  };
}

let calls: EventLog<{ path: string; body: string }>;
beforeEach(() => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '150');
  calls = new EventLog();
  return () => vi.unstubAllEnvs();
});

const untilCalled = (text: string) =>
  calls.until(() => calls.items.some(({ path, body }) => path.includes(text) || body.includes(text)));

async function withReplica(use: (replica: FakeReplica) => Promise<void>): Promise<void> {
  await using replica = await startFakeReplica({ name: 'a' });
  await use(replica);
}

describe.each(FAULTS)('a collector that $name loses no export once it works again:', (fault) => {
  test('a record', () =>
    withReplica(async (replica) => {
      await using collector = await startFaultyServer(fault, takeAll(calls));
      await using gateway = await startGateway({
        replicas: [replica],
        collector,
        config: { export: { retry: { initial: '1ms', max: '5ms' } } },
      });
      expect((await gateway.chat()).status).toBe(200);
      await collector.untilMet(2);
      collector.mend();
      await untilCalled(replica.name);
      await expect.poll(() => gateway.stats()).toMatchObject({ exported: 1, queued: 0, rejected: 0 });
      expect((await gateway.stats()).failed_calls).toBeGreaterThanOrEqual(2);
      await collector.untilLetGo();
    }));

  test('an admin action', () =>
    withReplica(async (replica) => {
      await using collector = await startFaultyServer(fault, takeAll(calls));
      await using gateway = await startGateway({ replicas: [replica], collector });
      await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
      await collector.untilMet(1);
      collector.mend();
      // A span that was sent on an earlier connection may be lost with it.
      await expect
        .poll(async () => {
          await gateway.admin('/admin/replicas/a/undrain?reason=again', { method: 'POST' });
          await gateway.admin('/admin/replicas/a/drain?reason=again', { method: 'POST' });
          return calls.items.length;
        })
        .toBeGreaterThan(0);
      await collector.untilLetGo();
    }));

  test('the metrics', () =>
    withReplica(async (replica) => {
      await using collector = await startFaultyServer(fault, takeAll(calls));
      await using _gateway = await startGateway({
        replicas: [replica],
        collector,
        config: { metrics: { otlp: true, interval: '200ms' } },
      });
      await collector.untilMet(1);
      collector.mend();
      await untilCalled('/v1/metrics');
      await collector.untilLetGo();
    }));
});

describe('no record arrives, but each call ends, when', () => {
  test('a TLS handshake hangs', () =>
    withReplica(async (replica) => {
      await using silent = await startFaultyServer(SAYS_NOTHING, takeAll(calls));
      await using gateway = await startGateway({
        replicas: [replica],
        collector: { url: silent.url.replace('http:', 'https:') },
        config: { shutdown: { flush: '0s' } },
      });
      await gateway.chat();
      await expect.poll(async () => (await gateway.stats()).failed_calls).toBeGreaterThanOrEqual(2);
      await gateway.close();
      await silent.untilLetGo();
    }));

  test('a connection is never accepted', () =>
    withReplica(async (replica) => {
      await using full = await startFullServer();
      await using gateway = await startGateway({
        replicas: [replica],
        collector: full,
        config: { shutdown: { flush: '0s' } },
      });
      await gateway.chat();
      await expect.poll(async () => (await gateway.stats()).failed_calls).toBeGreaterThanOrEqual(2);
      expect(await gateway.untilLogged('collector_away')).toContain('"reason":"timeout"');
    }));
});

/** A server with a blocked thread and a full queue of connections. */
async function startFullServer(): Promise<AsyncDisposable & { readonly url: string }> {
  const thread = new Worker(
    `const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  const [port] = await once(thread, 'message');
  const sockets = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  await once(sockets[0] as Socket, 'connect');
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await thread.terminate();
    },
  };
}
