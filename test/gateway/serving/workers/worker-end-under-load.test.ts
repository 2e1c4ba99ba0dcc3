import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { balanceOf, requestSpansOf, startWorkers } from './start-workers.ts';

test('a worker that ends under load leaves every record accounted for', async () => {
  using watched = watchWorkerThreads();
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica();
  await using gateway = await startWorkers(2, { replicas: [replica], collector });
  // Clients send until it is disposed of, also by an assertion that fails: the gateway waits for them.
  using load = new DisposableStack();
  let isStarting = false;
  let answered = 0;
  const client = async () => {
    while (!load.disposed) {
      const isWhole = await gateway.chat().then(
        (answer) =>
          answer.text().then(
            () => true,
            () => false,
          ),
        () => false,
      );
      if (isWhole) answered++;
      // While a worker starts, they would send thousands of requests.
      if (isStarting) await setTimeout(250);
    }
  };
  const clients = Array.from({ length: 16 }, client);

  for (let kill = 0; kill < 4; kill++) {
    await replica.untilRequests(replica.requests.length + 40);
    await watched.kill(kill);
    isStarting = true;
    await watched.untilStarted(kill + 3);
    isStarting = false;
    const { begun, accounted } = await balanceOf(gateway);
    expect(begun).toBe(accounted);
  }
  load.dispose();
  await Promise.all(clients);
  await gateway.close();

  const spans = requestSpansOf(collector);
  const received = new Set(spans.map(({ spanId }) => spanId));
  expect(received.size).toBe(spans.length);
  expect(gateway.records).toHaveLength(received.size);
  // A client can have its answer when the record is lost with the worker, but not the other way round.
  expect(answered).toBeGreaterThanOrEqual(100);
});
