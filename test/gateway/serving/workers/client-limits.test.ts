import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { chatAtOnce, startWorkers } from './start-workers.ts';

const clientOf = (name: string, limits: object) => ({
  name,
  key_sha256: createHash('sha256').update(name).digest('hex'),
  ...limits,
});
const withKey = (name: string) => ({ headers: { 'x-api-key': name } });

test('the workers count what a client uses together, and forget what a dead worker had in flight', async () => {
  using watched = watchWorkerThreads();
  await using replica = await startFakeReplica();
  await using gateway = await startWorkers(2, {
    replicas: [replica],
    config: {
      clients: [clientOf('rated', { requests_per_minute: 3 }), clientOf('parallel', { max_inflight: 12 })],
    },
  });
  const statusesOf = async (requests: readonly Promise<Response | null>[]) =>
    (await Promise.all(requests)).map((answer) => answer?.status);

  const statuses = await statusesOf(chatAtOnce(gateway, 30, withKey('rated')));
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  expect(statuses.filter((status) => status === 429)).toHaveLength(27);

  replica.answer(hang);
  const before = replica.requests.length;
  const waiting = chatAtOnce(gateway, 12, withKey('parallel'));
  await replica.untilRequests(before + 12);
  expect(await statusesOf(chatAtOnce(gateway, 10, withKey('parallel')))).toEqual(Array(10).fill(429));

  await watched.kill(0);
  await watched.kill(1);
  expect(await Promise.all(waiting)).toEqual(Array(12).fill(null));
  for (const worker of [1, 2]) await gateway.untilLogged(`"worker":${worker},"msg":"worker replaced"`);

  const again = chatAtOnce(gateway, 12, withKey('parallel'));
  await replica.untilRequests(before + 24);
  expect((await gateway.chat({}, withKey('parallel'))).status).toBe(429);
  expect((await gateway.chat({}, withKey('rated'))).status).toBe(429);
  replica.resetConnections();
  expect(await statusesOf(again)).toEqual(Array(12).fill(502));
});

test('the workers count what the tenant of several clients uses together', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startWorkers(2, {
    replicas: [replica],
    config: {
      clients: [clientOf('a', { tenant: 't' }), clientOf('b', { tenant: 't' })],
      tenant_limits: { default: { requests_per_minute: 3 } },
    },
  });
  const sent = [...chatAtOnce(gateway, 15, withKey('a')), ...chatAtOnce(gateway, 15, withKey('b'))];
  const statuses = (await Promise.all(sent)).map((answer) => answer?.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  expect(statuses.filter((status) => status === 429)).toHaveLength(27);
});

test('the workers count requests without a record together', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startWorkers(2, {
    replicas: [replica],
    config: {
      pass: ['GET /version'],
      clients: [clientOf('rated', { requests_per_minute: 3 }), clientOf('parallel', { max_inflight: 4 })],
    },
  });
  const ask = (name: string) => {
    const headers = { 'x-api-key': name, Connection: 'close' };
    return fetch(`${gateway.url}/version`, { headers });
  };
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await ask('rated')).status));
  expect(statuses.toSorted()).toEqual([...Array(3).fill(200), ...Array(17).fill(429)]);

  const gate = createGate();
  replica.answer(gate.script);
  const before = replica.requests.length;
  const waiting = Array.from({ length: 4 }, () => ask('parallel'));
  await replica.untilRequests(before + 4);
  const refused = await Promise.all(Array.from({ length: 10 }, async () => (await ask('parallel')).status));
  expect(refused).toEqual(Array(10).fill(429));
  gate.open();
  for (const answer of waiting) expect((await answer).status).toBe(200);
});
