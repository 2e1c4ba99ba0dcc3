import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { ClientPool, type PooledClient } from '../../src/replicas/client-pool.ts';

class TestClient extends Client implements PooledClient {
  isConnected = false;

  constructor(port: number) {
    super(`http://127.0.0.1:${port}`, { pipelining: 1 });
    this.on('connect', () => {
      this.isConnected = true;
    });
    this.on('disconnect', () => {
      this.isConnected = false;
    });
  }
}

/** A server whose responses are ended by the test, and a pool of connections to it. */
async function startServer({ maxAgeMs = Number.POSITIVE_INFINITY } = {}) {
  const open: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    open.push(response);
    server.emit('arrival');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let made = 0;
  const pool = new ClientPool({
    createClient: () => {
      made++;
      return new TestClient(port);
    },
    maxAgeMs,
  });
  onTestFinished(async () => {
    await pool.destroy();
    server.close();
  });
  return {
    pool,
    server,
    open,
    made: () => made,
    /** Sends a request; resolves when the server has it. */
    async arrive() {
      const arrival = once(server, 'arrival');
      const done = send(pool);
      await arrival;
      return done;
    },
  };
}

/** Sends a request. `over`: when its response is complete, or why it failed. */
function send(pool: ClientPool<TestClient>, path = '/'): { readonly over: Promise<Error | null> } {
  const over = new Promise<Error | null>((resolve) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart: () => undefined,
      onResponseData: () => undefined,
      onResponseEnd: () => resolve(null),
      onResponseError: (_controller, error) => resolve(error),
    };
    pool.dispatch({ method: 'GET', path }, handler);
  });
  return { over };
}

/** Lets what a client does after the end of a response be done. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('a connection is used again, the one used last first', async () => {
  const { pool, open, made, arrive } = await startServer();
  for (let round = 0; round < 3; round++) {
    const { over } = await arrive();
    open.pop()?.end();
    expect(await over).toBeNull();
    await turn();
  }
  expect(made()).toBe(1);
  expect(pool.size).toBe(1);
});

test('requests at one time have a connection each, and never wait for one another', async () => {
  const { pool, open, made, arrive } = await startServer();
  const requests = [];
  for (let count = 0; count < 20; count++) requests.push(await arrive());
  expect(made()).toBe(20);
  for (const response of open) response.end();
  for (const { over } of requests) expect(await over).toBeNull();
  expect(pool.size).toBe(20);
});

test('a connection that the other side closes while it is idle is forgotten', async () => {
  const { pool, server, open, made, arrive } = await startServer();
  const { over } = await arrive();
  open.pop()?.end();
  await over;
  await turn();
  server.closeIdleConnections();
  await expect.poll(() => pool.size).toBe(0);
  const next = await arrive();
  open.pop()?.end();
  expect(await next.over).toBeNull();
  expect(made()).toBe(2);
});

test('what cannot connect, and what breaks, is forgotten', async () => {
  const { pool, server, open, arrive } = await startServer();
  const { over } = await arrive();
  open.pop()?.destroy();
  expect(await over).toBeInstanceOf(Error);
  server.close();
  await once(server, 'close');
  expect(await send(pool).over).toBeInstanceOf(Error);
  await expect.poll(() => pool.size).toBe(0);
});

test('a request that undici refuses leaves its connection free', async () => {
  const { pool, open, made, arrive } = await startServer();
  expect(await send(pool, 'no path').over).toBeInstanceOf(Error);
  expect(pool.size).toBe(0);
  const { over } = await arrive();
  open.pop()?.end();
  await over;
  await turn();
  expect(await send(pool, 'no path').over).toBeInstanceOf(Error);
  await arrive();
  expect(made()).toBe(2);
});

test('a connection that is too old takes no further request', async () => {
  const { pool, open, made, arrive } = await startServer({ maxAgeMs: 0 });
  for (let round = 0; round < 2; round++) {
    const { over } = await arrive();
    open.pop()?.end();
    await over;
    await turn();
  }
  expect(made()).toBe(2);
  expect(pool.size).toBe(1);
});
