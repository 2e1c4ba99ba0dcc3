import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { runs } from '#testkit/runs.ts';
import { type ReplicaAnswer, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

async function drain(gateway: StartedGateway, target = 'a/drain'): Promise<ReplicaAnswer> {
  const response = await gateway.admin(`/admin/replicas/${target}`, { method: 'POST' });
  expect(response.status).toBe(200);
  return ((await response.json()) as { replica: ReplicaAnswer }).replica;
}

/** A replica behind TLS: connections to it are accepted, but no handshake is answered before the gate is open. */
async function startGatedReplica() {
  const authority = await createAuthority();
  onTestFinished(() => authority[Symbol.asyncDispose]());
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, authority.ca.cert]);
  onTestFinished(() => setDefaultCACertificates(trusted));

  let requestCount = 0;
  const server = createHttpsServer(await authority.issue('replica'), (request, response) => {
    if (request.headers['x-request-id'] !== undefined) requestCount++;
    response.end('{}');
  });
  const gate = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const front = createServer(async (socket) => {
    sockets.add(socket.on('error', () => undefined));
    await gate.promise;
    const behind = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.add(behind.on('error', () => undefined));
    socket.pipe(behind).pipe(socket);
  });
  const untilConnectedOnce = once(front, 'connection');
  for (const each of [server, front]) await once(each.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const each of sockets) each.destroy();
    front.close();
    server.close();
  });
  return {
    url: `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    /** Resolves when another connection is accepted. */
    untilConnecting: () => once(front, 'connection'),
    untilConnectedOnce,
    openGate: gate.resolve,
    get requestCount() {
      return requestCount;
    },
  };
}

test('a request that was still connecting when the drain came goes to another replica', async () => {
  const a = await startGatedReplica();
  await using b = await startFakeReplica({ name: 'b' });
  await using gateway = await startGateway({ replicas: [{ name: 'a', url: a.url }, b] });
  // The gateway has probed it, and waits for its handshake.
  await a.untilConnectedOnce;
  const connecting = a.untilConnecting();
  const chat = gateway.chat();
  await connecting;

  expect(await drain(gateway)).toMatchObject({ drained: true, inflight: 1, safe_to_stop: false });
  a.openGate();

  expect((await chat).status).toBe(200);
  expect(b.requests).toHaveLength(1);
  expect(await drain(gateway, 'a/drain?wait=1h')).toMatchObject({ inflight: 0, safe_to_stop: true });
  expect(a.requestCount).toBe(0);
});

test('such a request goes to that replica after all if it is undrained before another one has room', async () => {
  const a = await startGatedReplica();
  const gate = createGate();
  await using b = await startFakeReplica({ name: 'b', script: gate.script });
  const replicas = [
    { name: 'a', url: a.url },
    { name: 'b', url: b.url, max_inflight: 1 },
  ];
  await using gateway = await startGateway({ replicas });
  await a.untilConnectedOnce;
  await drain(gateway);
  const first = gateway.chat();
  await b.untilRequests(1);
  await drain(gateway, 'a/undrain');
  const connecting = a.untilConnecting();
  const second = gateway.chat();
  await connecting;
  await drain(gateway);
  a.openGate();
  const list = async () => (await gateway.admin('/admin/replicas')).json();
  await expect.poll(list).toMatchObject({ waiting: 1 });

  await drain(gateway, 'a/undrain');
  gate.open();

  expect([(await first).status, (await second).status]).toEqual([200, 200]);
  expect([a.requestCount, b.requests.length]).toEqual([1, 1]);
  const records = await gateway.waitForRecords(2);
  expect(records.map(({ replica, attempts }) => [replica, attempts]).toSorted()).toEqual([
    ['a', 1],
    ['b', 1],
  ]);
});

/** Keeps what is posted to a worker from it, as if it were busy; the function returned lets it have all. */
function holdMessages(worker: Worker | undefined): () => void {
  if (worker === undefined) throw new Error('there is no such worker');
  const post = worker.postMessage.bind(worker);
  const held: unknown[] = [];
  worker.postMessage = (message) => held.push(message);
  return () => {
    worker.postMessage = post;
    for (const message of held) post(message);
  };
}

test('while a worker has not confirmed the drain, nobody is told that it is safe', async () => {
  await using a = await startFakeReplica({ name: 'a' });
  using workers = watchWorkerThreads();
  await using gateway = await startGateway({ replicas: [a], config: { gateway: { workers: 2 } } });
  const letGo = holdMessages(workers.threads[1]);

  const response = await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  expect(await response.json()).toMatchObject({
    replica: { drained: true, inflight: 0, safe_to_stop: null },
    warning: expect.stringMatching(/^Worker 2 has not confirmed it yet/),
  });
  expect(await gateway.replicas()).toMatchObject([{ safe_to_stop: null }]);
  letGo();
  await expect.poll(() => gateway.replicas()).toMatchObject([{ safe_to_stop: true }]);
});

const CLIENTS = 16;
const ROUNDS = runs(8);

test.for([1, 2])(
  'under load nothing reaches the replica after the answer, with %d workers',
  async (workers) => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, b], config: { gateway: { workers } } });
    const statuses = new Set<number>();
    const onAnswer = ({ status }: Response) => void statuses.add(status);
    {
      await using _chats = keepChatting(gateway, { clientCount: CLIENTS, pauseMs: 0, onAnswer });
      for (let round = 0; round < ROUNDS; round++) {
        await a.untilRequests(a.requests.length + CLIENTS);
        await drain(gateway);
        // What was sent before the answer lies ready to be read: the fake replica gets its turns to read it.
        for (let turn = 0; turn < 10; turn++) await setImmediate();
        const arrived = a.requests.length;
        await b.untilRequests(b.requests.length + 2 * CLIENTS);
        expect(a.requests).toHaveLength(arrived);
        expect(await drain(gateway, 'a/drain?wait=1h')).toMatchObject({ safe_to_stop: true });
        await drain(gateway, 'a/undrain');
      }
    }
    expect(statuses).toEqual(new Set([200]));
  },
);
