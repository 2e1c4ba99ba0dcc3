import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '../support/fake-collector.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  hang,
  refusedUrlBeside,
  resetAfterRequest,
  startFakeReplica,
} from '../support/fake-replica.ts';
import { type StartedGateway, startGateway } from '../support/start-gateway.ts';

/** Sends chat requests one after the other, and returns which replica each record names. */
async function turnsOf(gateway: StartedGateway, count: number, members: object = {}): Promise<unknown[]> {
  const before = gateway.records.length;
  for (let i = 0; i < count; i++) await (await gateway.chat(members)).arrayBuffer();
  const records = await gateway.waitForRecords(before + count);
  return records.slice(before).map(({ replica }) => replica);
}

/** Starts replicas with these names; `close` ends them all. */
async function startReplicas(...names: string[]): Promise<FakeReplica[] & AsyncDisposable> {
  const replicas = await Promise.all(names.map((name) => startFakeReplica({ name })));
  return Object.assign(replicas, {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(replicas.map((replica) => replica.close()));
    },
  });
}

const errorOf = async (response: Response) => ((await response.json()) as { error: unknown }).error;

describe('turns', () => {
  test('go round the replicas of the model in the order of the configuration', async () => {
    await using replicas = await startReplicas('a', 'b', 'c');
    await using gateway = await startGateway({ replicas });

    expect(await turnsOf(gateway, 7)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
  });

  test('are kept for each model by itself', async () => {
    await using replicas = await startReplicas('a', 'b');
    const models = ['m', 'n'];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }) => ({ name, url, models })),
    });

    expect(await turnsOf(gateway, 1, { model: 'm' })).toEqual(['a']);
    expect(await turnsOf(gateway, 2, { model: 'n' })).toEqual(['a', 'b']);
    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['b', 'a']);
  });

  test('pass over replicas of other models', async () => {
    await using replicas = await startReplicas('a', 'b', 'c');
    const models = [['m'], ['n'], ['m', 'n']];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }, i) => ({ name, url, models: models[i] ?? [] })),
    });

    expect(await turnsOf(gateway, 4, { model: 'm' })).toEqual(['a', 'c', 'a', 'c']);
    expect(await turnsOf(gateway, 4, { model: 'n' })).toEqual(['b', 'c', 'b', 'c']);
  });

  test('stay even when one is drained', async () => {
    await using replicas = await startReplicas('a', 'b', 'c');
    await using gateway = await startGateway({ replicas });
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });

    expect(await turnsOf(gateway, 4)).toEqual(['a', 'c', 'a', 'c']);
    await gateway.admin('/admin/replicas/b/undrain', { method: 'POST' });
    expect(await turnsOf(gateway, 6)).toEqual(expect.arrayContaining(['a', 'b', 'c']));
  });

  test('of 100 concurrent requests on 4 replicas, one refusing, differ by at most 1', async () => {
    await using replicas = await startReplicas('a', 'b', 'c', 'd');
    for (const replica of replicas) {
      replica.answer(answerJson(COMPLETION));
    }
    const [refusing] = replicas;
    const configured = replicas.map((replica) =>
      replica === refusing ? { name: replica.name, url: refusedUrlBeside(replica) } : replica,
    );
    await using gateway = await startGateway({ replicas: configured });

    const responses = await Promise.all(Array.from({ length: 100 }, () => gateway.chat()));

    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200));
    const counts = replicas.slice(1).map(({ requests }) => requests.length);
    expect(counts.reduce((sum, count) => sum + count)).toBe(100);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(replicas[0]?.requests).toEqual([]);
  });

  test('of 100 requests one after the other, one replica refusing, differ by at most 1', async () => {
    await using replicas = await startReplicas('a', 'b', 'c', 'd');
    const configured = replicas.map((replica) =>
      replica.name === 'b' ? { name: 'b', url: refusedUrlBeside(replica) } : replica,
    );
    await using gateway = await startGateway({ replicas: configured });

    await turnsOf(gateway, 100);

    const counts = replicas.filter(({ name }) => name !== 'b').map(({ requests }) => requests.length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });
});

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

describe('without a replica to send to', () => {
  test('all drained is a 503 with Retry-After', async () => {
    await using replicas = await startReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    for (const name of ['a', 'b']) await gateway.admin(`/admin/replicas/${name}/drain`, { method: 'POST' });

    const response = await gateway.chat();

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toMatchObject({
      code: 'all_replicas_drained',
      type: 'server_error',
      param: null,
    });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 503, error_type: 'all_replicas_drained', model: 'm' });
    expect(record.replica).toBeUndefined();
    expect(record.attempts).toBeUndefined();
  });

  test('none reachable is a 502, and the record names the one tried last', async () => {
    await using replicas = await startReplicas('a', 'b');
    await using gateway = await startGateway({
      replicas: replicas.map((replica) => ({ name: replica.name, url: refusedUrlBeside(replica) })),
    });

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await errorOf(response)).toMatchObject({
      code: 'no_replica_reachable',
      type: 'server_error',
      param: null,
    });
    expect(await gateway.nextRecord()).toMatchObject({
      status: 502,
      error_type: 'no_replica_reachable',
      attempts: 2,
      replica: 'b',
    });
  });

  test('some drained and the others refusing is a 502: a drain is not why it failed', async () => {
    await using replicas = await startReplicas('a', 'b');
    await using gateway = await startGateway({
      replicas: replicas.map((replica) => ({ name: replica.name, url: refusedUrlBeside(replica) })),
    });
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({ attempts: 1, replica: 'b' });
  });

  test('a model that nobody serves is a 404 that names the parameter, and tries nobody', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.chat({ model: 'nobody-has-it' });

    expect(response.status).toBe(404);
    expect(await errorOf(response)).toEqual({
      message: expect.not.stringContaining('nobody-has-it'),
      type: 'invalid_request_error',
      param: 'model',
      code: 'model_not_found',
    });
    expect(await gateway.nextRecord()).toMatchObject({ status: 404, model: 'nobody-has-it' });
    expect(replica.requests).toEqual([]);
  });

  test('a model whose name is that of an object member is a 404 as well', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    for (const model of ['__proto__', 'constructor', 'toString', '*', '']) {
      expect((await gateway.chat({ model })).status, model).toBe(404);
    }
  });
});

describe('which replicas serve a model', () => {
  test('["*"] serves any name, beside those that name it', async () => {
    await using replicas = await startReplicas('a', 'b');
    const models = [['m'], ['*']];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }, i) => ({ name, url, models: models[i] ?? [] })),
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['a', 'b']);
    expect(await turnsOf(gateway, 2, { model: 'any' })).toEqual(['b', 'b']);
  });

  test('auto is read from /v1/models at the start, with probes that are no requests', async () => {
    await using a = await startFakeReplica({ name: 'a', list: { models: ['m', 'n'] } });
    await using b = await startFakeReplica({ name: 'b', list: { models: ['n'] } });
    await using gateway = await startGateway({
      replicas: [a, b].map(({ name, url }) => ({ name, url, models: 'auto' as const, engine: 'auto' })),
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['a', 'a']);
    expect(await turnsOf(gateway, 2, { model: 'n' })).toEqual(['a', 'b']);
    expect((await gateway.chat({ model: 'x' })).status).toBe(404);
    expect(a.probes).toHaveLength(1);
    expect(a.probes[0]?.header('authorization')).toEqual([]);
  });

  test('a replica whose list is not known is a candidate only when nobody is known to serve the model', async () => {
    await using known = await startFakeReplica({ name: 'known' });
    await using unknown = await startFakeReplica({ name: 'unknown' });
    await using gateway = await startGateway({
      replicas: [
        { name: 'unknown', url: unknown.url, models: 'auto' },
        { name: 'known', url: known.url, models: ['m'] },
      ],
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['known', 'known']);
    expect(await turnsOf(gateway, 1, { model: 'x' })).toEqual(['unknown']);
  });

  test.for([
    ['vllm', 'vllm'],
    ['sglang', 'sglang'],
    ['llamacpp', 'llamacpp'],
    ['library', 'ollama'],
    ['openai', 'openai'],
    ['somebody', 'openai'],
  ] as const)('owned_by %s makes the engine %s', async ([ownedBy, engine]) => {
    await using replica = await startFakeReplica({ list: { models: ['m'], ownedBy } });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
    });

    const view = (await (await gateway.admin('/admin/replicas')).json()) as { replicas: unknown[] };

    expect(view.replicas).toEqual([expect.objectContaining({ engine, models: ['m'] })]);
  });

  test('a drained replica is spared by the probes', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m'] } });
    const configured = { name: 'a', url: replica.url, models: 'auto' as const, engine: 'auto' };
    await using first = await startGateway({ replicas: [configured] });
    await first.admin('/admin/replicas/a/drain', { method: 'POST' });
    const before = replica.probes.length;

    await using second = await startGateway({ replicas: [configured], stateDir: first.stateDir });

    expect(replica.probes).toHaveLength(before);
    expect((await second.chat()).status).toBe(503);
  });
});

describe('a connection that breaks before the first byte of a response', () => {
  test('when it is a reused one, is repeated once on a fresh connection to the same replica', async () => {
    await using replicas = await startReplicas('a', 'b');
    const [a] = replicas;
    if (a === undefined) throw new Error('no replica');
    await using gateway = await startGateway({ replicas });
    await turnsOf(gateway, 2);
    a.answerOnce(resetAfterRequest);

    const response = await gateway.chat();

    expect(response.status).toBe(200);
    const [, , record] = await gateway.waitForRecords(3);
    expect(record).toMatchObject({ replica: 'a', attempts: 2, status: 200 });
    expect(a.requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
    const ids = a.requests.slice(1).map((request) => request.header('x-request-id'));
    expect(ids[0]).toEqual(ids[1]);
  });

  test('when the fresh one is reset too, is a 502: the replica may have begun to work', async () => {
    await using replicas = await startReplicas('a', 'b');
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
    await using replicas = await startReplicas('a', 'b');
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
    await using replicas = await startReplicas('a', 'b');
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
