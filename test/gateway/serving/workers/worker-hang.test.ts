import { expect, test } from 'vitest';
import { type FakeReplica, hang, startFakeReplicas } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { chatAtOnce, startWorkers } from './start-workers.ts';

/** Replica, gateway and clients are one process: on a busy machine it takes a while to accept a connection. */
const PATIENT = { timeouts: { connect: '30s' } };

test('a worker that hangs is replaced after ten seconds, and blocks nothing for longer', async () => {
  using watched = watchWorkerThreads();
  await using replicas = await startFakeReplicas('a', 'b');
  const [a, b] = replicas as unknown as [FakeReplica, FakeReplica];
  a.answer(hang);
  await using gateway = await startWorkers(2, { replicas: [a], config: PATIENT });
  const waiting = chatAtOnce(gateway, 40);
  await a.untilRequests(40);
  await watched.block(1, 3_600_000);
  gateway.writeConfig({ replicas: [b] });
  const reloaded = gateway.reload();

  expect(JSON.parse(await gateway.untilLogged('worker hangs'))).toMatchObject({ level: 50, worker: 2 });
  await gateway.untilLogged('worker replaced');
  expect((await reloaded).status).toBe(200);
  for (const answer of await Promise.all(chatAtOnce(gateway, 10))) expect(answer?.status).toBe(200);
  expect(b.requests).toHaveLength(10);
  // The requests of the hung worker are lost; those of the other one continue.
  const { lost = 0 } = await gateway.stats();
  const [removing] = (await gateway.replicas()).filter(({ removing }) => removing);
  expect(lost).toBeGreaterThan(0);
  expect(removing?.inflight).toBe(40 - lost);
  const metrics = await (await gateway.admin('/metrics')).text();
  expect(metrics).toMatch(/^gateway_worker_ended_total 1$/m);
  expect(metrics).toMatch(/^gateway_worker_hung_total 1$/m);
  expect(gateway.logLines.join()).not.toContain('"worker":1,"msg":"worker hangs"');

  a.resetConnections();
  await Promise.all(waiting);
});
