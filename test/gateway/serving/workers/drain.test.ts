import { describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { runs } from '#testkit/runs.ts';
import { chatAtOnce, startWorkers, sumOf } from './start-workers.ts';

const POST = { method: 'POST' };
const ROUNDS = runs(16);

describe('a drain', () => {
  test('reaches every worker before it is answered, while requests run', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const [a, ...others] = replicas as unknown as [FakeReplica, ...FakeReplica[]];
    await using gateway = await startWorkers(3, { replicas: [a, ...others] });
    await using _chats = keepChatting(gateway, { clientCount: 16, pauseMs: 0 });
    await a.untilRequests(5);

    for (let round = 0; round < ROUNDS; round++) {
      await gateway.admin('/admin/replicas/a/drain', POST);
      const reached = a.requests.length;
      const before = sumOf(others.map(({ requests }) => requests.length));
      await others[0]?.untilRequests(Math.ceil(before / 2) + 20);
      expect(a.requests.length).toBe(reached);
      await gateway.admin('/admin/replicas/a/undrain', POST);
      await a.untilRequests(reached + 3);
    }
  });

  test('applies to a worker that replaces another', async () => {
    using watched = watchWorkerThreads();
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas as unknown as [FakeReplica, FakeReplica];
    await using gateway = await startWorkers(2, { replicas: [a, b] });
    await gateway.admin('/admin/replicas/a/drain', POST);

    await Promise.all([watched.kill(0), watched.kill(1)]);
    await watched.untilStarted(4);
    await gateway.untilLogged('worker replaced');
    for (const answer of await Promise.all(chatAtOnce(gateway, 20))) await answer?.text();

    expect(a.requests).toEqual([]);
    expect(b.requests.length).toBeGreaterThan(0);
  });

  test('names the worker that has not answered, and is confirmed when it has', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startWorkers(2, { replicas: [replica] });
    await watched.block(1, 8_000);

    const answer = await (await gateway.admin('/admin/replicas/a/drain', POST)).json();

    expect(answer).toMatchObject({ replica: { drained: true, safe_to_stop: null } });
    expect(JSON.parse(await gateway.untilLogged('drain not confirmed'))).toMatchObject({ workers: [2] });
    await expect.poll(() => gateway.replicas()).toMatchObject([{ safe_to_stop: true }]);
  });
});
