import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import {
  hang,
  refusedUrlBeside,
  resetAfterRequest,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

const errorOf = async (response: Response) => ((await response.json()) as { error: unknown }).error;

const CHAT = '/v1/chat/completions';

describe('a replica that cannot be connected to is skipped for that request', () => {
  test('when it refuses the connection', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(replica) }, replica],
    });

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ replica: 'b', attempts: 2, status: 200 });
  });

  test('when its name does not resolve', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: 'http://no-such-host.invalid:8000' }, replica],
    });

    expect((await gateway.chat()).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ replica: 'b', attempts: 2 });
  });

  test('when it does not take the connection in time', async () => {
    await using silent = await startUnresponsiveListener();
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: silent.url }, replica],
      config: { timeouts: { connect: '50ms' } },
    });

    expect((await gateway.chat()).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ replica: 'b', attempts: 2 });
  });

  test('when it does not speak TLS', async () => {
    await using plain = await startFakeReplica({ name: 'a' });
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: plain.url.replace('http:', 'https:') }, replica],
    });

    expect((await gateway.chat()).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ replica: 'b', attempts: 2 });
  });

  test('and gets its turns again once it takes connections', async () => {
    await using replica = await startFakeReplica({ name: 'b' });
    await using other = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [other, replica] });
    await other.close();

    expect(await turnsOf(gateway, 2)).toEqual(['b', 'b']);
  });

  test('each try is an event of the span and a line of the log, without an address', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(replica) }, replica],
      collector,
    });

    await gateway.chat();
    await collector.waitFor(({ spans }) => spans.length === 1);

    expect(collector.spans[0]?.events).toHaveLength(1);
    expect(JSON.stringify(collector.spans[0]?.events)).toContain('"a"');
    expect(JSON.stringify(collector.spans[0]?.events)).not.toContain('127.0.0');
    const line = gateway.logLines.find((text) => text.includes('attempt failed'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ replica: 'a', error_code: 'ECONNREFUSED' });
    expect(line).not.toContain('127.0.0');
  });
});

describe('a connection that breaks before the first byte of a response', () => {
  test('when it is a reused one, is repeated once on a fresh connection to the same replica', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    if (a === undefined) throw new Error('no replica');
    await using gateway = await startGateway({ replicas });
    await turnsOf(gateway, 2);
    a.answerOnce(resetAfterRequest);

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    const [, , record] = await gateway.waitForRecords(3);
    expect(record).toMatchObject({ replica: 'a', attempts: 2, status: 200 });
    expect(a.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 1, 2]);
    const ids = a.requests.slice(1).map((request) => request.header('x-request-id'));
    expect(ids[0]).toEqual(ids[1]);
  });

  test('when it is a reused one that took all of a large body, is repeated with that body', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat()).text();
    replica.answerOnce(resetAfterRequest);

    const response = await gateway.chat({ messages: [{ role: 'user', content: 'x'.repeat(100 * 1024) }] });

    expect(response.status).toBe(200);
    const [, first, second] = await Promise.all(replica.requests.map(({ body }) => body));
    expect(first?.length).toBeGreaterThan(100 * 1024);
    expect(second?.equals(first ?? Buffer.alloc(0))).toBe(true);
    expect(replica.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 1, 2]);
  });

  test('when the fresh one is reset too, is a 502: the replica may have begun to work', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({ replicas });
    await turnsOf(gateway, 2);
    a?.answer(resetAfterRequest);

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await errorOf(response)).toMatchObject({ code: 'upstream_failed', type: 'server_error' });
    const [, , record] = await gateway.waitForRecords(3);
    expect(record).toMatchObject({ replica: 'a', attempts: 2, error_type: 'upstream_failed', status: 502 });
    expect(b?.requests).toHaveLength(1);
  });

  test('when the fresh one is refused, goes to the next replica', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    if (a === undefined) throw new Error('no replica');
    await using gateway = await startGateway({ replicas });
    await turnsOf(gateway, 2);
    a.answerOnce(async ({ request }) => {
      await request.body;
      await a.close();
    });

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    const [, , record] = await gateway.waitForRecords(3);
    expect(record).toMatchObject({ replica: 'b', attempts: 3, status: 200 });
    expect(b?.requests).toHaveLength(2);
  });

  test('when it is a fresh one, is a 502 at once', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({ replicas });
    a?.answer(resetAfterRequest);

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({
      replica: 'a',
      attempts: 1,
      error_type: 'upstream_failed',
    });
    expect(a?.requests).toHaveLength(1);
    expect(b?.requests).toEqual([]);
  });

  test('cannot be a reused one for a body of more than 1 MiB, which is not kept for a repeat', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat()).text();
    replica.answerOnce(resetAfterRequest);

    const response = await gateway.chat({ messages: [{ role: 'user', content: 'x'.repeat(1 << 20) }] });

    expect(response.status).toBe(502);
    const [, record] = await gateway.waitForRecords(2);
    expect(record).toMatchObject({ attempts: 1, error_type: 'upstream_failed', status: 502 });
    expect(replica.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 2]);
  });

  test('in order (FIN) is the same as by a reset', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await turnsOf(gateway, 1);
    replica.answerOnce(async ({ request, cut }) => {
      await request.body;
      cut();
    });

    expect((await gateway.chat()).status).toBe(200);
    const [, record] = await gateway.waitForRecords(2);
    expect(record).toMatchObject({ attempts: 2 });
  });

  test('an idle connection is closed after timeouts.upstream_keep_alive', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { timeouts: { upstream_keep_alive: '50ms' } },
    });
    expect((await gateway.chat()).status).toBe(200);
    await replica.untilOpenConnections(0);
    expect((await gateway.chat()).status).toBe(200);
    expect(replica.connections).toHaveLength(2);
  });

  test('idle connections that an engine closes cost nobody an error', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    for (let i = 0; i < 5; i++) {
      expect((await gateway.chat()).status).toBe(200);
      replica.resetConnections();
    }
    const records = await gateway.waitForRecords(5);
    expect(records.every(({ status }) => status === 200)).toBe(true);
  });

  test('in the turn in which its request comes costs that not even an attempt', async () => {
    const sockets: Socket[] = [];
    const server = createServer((request, response) => {
      if (request.url === CHAT) sockets.push(request.socket);
      request.resume();
      response.end('{}');
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    onTestFinished(() => closeServer(server));
    await using gateway = await startGateway({ replicas: [{ name: 'a', url }] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes(CHAT, '{"model":"m"}'));
    await client.readResponse();

    // The gateway reads the request first, and then the end of the connection that it has chosen for it.
    client.write(postBytes(CHAT, '{"model":"m"}'));
    sockets[0]?.end();

    expect((await client.readResponse()).status).toBe(200);
    expect(new Set(sockets).size).toBe(2);
    const records = await gateway.waitForRecords(2);
    expect(records.map(({ attempts }) => attempts)).toEqual([1, 1]);
  });

  test('after the first response byte nothing is repeated', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await turnsOf(gateway, 1);
    replica.answerOnce(async ({ request, raw, cut }) => {
      await request.body;
      await raw('HTTP/1.1 200 OK\r\nContent-Le');
      cut();
    });

    expect((await gateway.chat()).status).toBe(502);
    expect(replica.requests).toHaveLength(2);
  });

  test('an answer that is not HTTP is a 502', async () => {
    await using replica = await startFakeReplica({
      script: async ({ request, raw, cut }) => {
        await request.body;
        await raw('SSH-2.0-OpenSSH_9.6\r\n');
        cut();
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });

    expect((await gateway.chat()).status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({ error_type: 'upstream_failed', status: 502 });
  });
});

test('a stream holds up no other request to the same replica', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  const leave = new AbortController();
  const waiting: Promise<unknown>[] = [];
  for (let i = 0; i < 20; i++) {
    replica.answerOnce(hang);
    waiting.push(gateway.chat({}, { signal: leave.signal }).catch(() => undefined));
  }
  await replica.untilRequests(20);

  expect((await gateway.chat()).status).toBe(200);

  leave.abort();
  await Promise.all(waiting);
  expect(await gateway.waitForRecords(21)).toHaveLength(21);
});

/** A listener whose queue of connections is full and that accepts none: who connects waits in vain. */
async function startUnresponsiveListener(): Promise<{ url: string } & AsyncDisposable> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:net').createServer();
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       parentPort.once('message', (gate) => Atomics.wait(new Int32Array(gate), 0, 0));
     });`,
    { eval: true },
  );
  const [port] = (await once(worker, 'message')) as [number];
  const gate = new SharedArrayBuffer(4);
  worker.postMessage(gate);
  // The kernel takes backlog + 1 connections by itself; what comes after them hears nothing.
  const queued: Socket[] = [];
  for (let i = 0; i < 2; i++) {
    const socket = connect(port, '127.0.0.1');
    queued.push(socket);
    await once(socket, 'connect');
  }
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of queued) socket.destroy();
      Atomics.store(new Int32Array(gate), 0, 1);
      Atomics.notify(new Int32Array(gate), 0);
      await worker.terminate();
    },
  };
}
