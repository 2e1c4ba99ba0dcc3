import { expect, test } from 'vitest';
import { startFakeReplicas } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { chatAtOnce, startWorkers } from './start-workers.ts';

test('a worker that replaces another has what the last reload and the last drain have changed', async () => {
  using watched = watchWorkerThreads();
  await using replicas = await startFakeReplicas('a', 'b', 'c');
  const [a, b, c] = replicas as unknown as [(typeof replicas)[0], (typeof replicas)[0], (typeof replicas)[0]];
  await using gateway = await startWorkers(2, { replicas: [a] });
  gateway.writeConfig({
    replicas: [b, c],
    config: { limits: { body: '2KiB' }, log: { level: 'debug' }, gateway: { workers: 2 } },
  });
  expect((await gateway.reload()).status).toBe(200);
  await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
  await Promise.all([watched.kill(0), watched.kill(1)]);
  for (const worker of [1, 2]) await gateway.untilLogged(`"worker":${worker},"msg":"worker replaced"`);

  const answers = await Promise.all(chatAtOnce(gateway, 20));
  expect(answers.map((answer) => answer?.status)).toEqual(Array(20).fill(200));
  expect([a, b, c].map(({ requests }) => requests.length)).toEqual([0, 0, 20]);
  expect((await gateway.chat({ pad: 'x'.repeat(4_096) })).status).toBe(413);
  await gateway.untilLogged('request begins');
});
