import { once } from 'node:events';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { chatChunk, DONE, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { chatAtOnce, startWorkers } from './start-workers.ts';

describe('starting and stopping', () => {
  test.each([1, 2])(
    'a port that a gateway of %s workers uses is reported in one clear line',
    async (workers) => {
      await using replica = await startFakeReplica();
      await using gateway = await startWorkers(workers, { replicas: [replica] });
      const listen = gateway.url.replace('http://', '');

      await expect(startWorkers(2, { replicas: [replica], config: { gateway: { listen } } })).rejects.toThrow(
        /^gateway\.listen 127\.0\.0\.1:\d+: the port is already in use(?: by .+)?: stop (?:it|the process that listens there), or configure another port$/,
      );
      expect((await gateway.chat()).status).toBe(200);
    },
  );

  test('nobody else gets the port that the system picked, before the workers have it', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();

    const starting = startWorkers(2, { replicas: [replica] });
    await watched.untilStarted(2);
    const [worker] = watched.threads as [Worker];
    const post = worker.postMessage.bind(worker);
    const taken = Promise.withResolvers<unknown>();
    worker.postMessage = (message: { readonly name: string; readonly args: readonly { port: number }[] }) => {
      if (message.name !== 'listen') return post(message);
      worker.postMessage = post;
      taken.resolve(take(message.args[0]?.port).finally(() => post(message)));
    };

    await expect(taken.promise).rejects.toThrow('EADDRINUSE');
    await using gateway = await starting;
    expect((await gateway.chat()).status).toBe(200);
  });

  test('a start fails with the reason why a worker has ended', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();

    const starting = startWorkers(2, { replicas: [replica] });
    const failed = expect(starting).rejects.toThrow(
      /^gateway\.listen 127\.0\.0\.1:0: worker 2 ended before it could listen: it exited with code \d$/,
    );
    await watched.untilStarted(2);
    await watched.kill(1);

    await failed;
  });

  test('a shutdown waits for the requests of all workers, and delivers all records', async () => {
    const gate = createStreamGate([chatChunk('x')], DONE);
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ script: gate.script });
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const streams = await Promise.all(chatAtOnce(gateway, 20));
    using opened = new DisposableStack();
    const idle = await Promise.all(
      Array.from({ length: 8 }, async () => opened.use(await RawConnection.open(gateway.url))),
    );
    const closing = gateway.close();
    await Promise.all(idle.map((connection) => connection.readToClose()));

    gate.open();
    const texts = await Promise.all(streams.map((stream) => stream?.text()));

    expect(await closing).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
    expect(texts).toEqual(Array(20).fill(chatChunk('x') + DONE));
    expect(collector.spans).toHaveLength(20);
  });

  test('requests that exceed the grace period are cut in all workers, and counted', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { shutdown: { grace: '1ms' } },
    });
    const waiting = chatAtOnce(gateway, 20);
    await replica.untilRequests(20);

    expect(await gateway.close()).toEqual({ cutRequests: 20, undeliveredRecords: 0 });

    for (const answer of await Promise.all(waiting)) expect(answer?.status).toBe(503);
    expect(gateway.records).toHaveLength(20);
    expect(gateway.records.every(({ error_type }) => error_type === 'shutting_down')).toBe(true);
  });

  test('requests of workers that die during the grace period are counted as cut, and the log says that their records are lost', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { timeouts: { connect: '30s' }, shutdown: { grace: '10m' } },
    });
    const waiting = chatAtOnce(gateway, 20);
    await replica.untilRequests(20);

    const closing = gateway.close();
    await Promise.all([watched.kill(0), watched.kill(1)]);

    expect(await closing).toEqual({ cutRequests: 20, undeliveredRecords: 0 });
    expect(await Promise.all(waiting)).toEqual(Array(20).fill(null));
    const ends = gateway.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'worker ended');
    expect(ends.reduce((sum, { lost }) => sum + lost, 0)).toBe(20);
    expect(ends.every((end) => !('restart_ms' in end))).toBe(true);
    expect(gateway.records).toEqual([]);
  });

  test('/healthz answers 503 from every worker during shutdown.delay', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { shutdown: { delay: '1s' } },
    });
    const closing = gateway.close();

    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`${gateway.url}/healthz`)).status),
    );

    expect(new Set(statuses)).toEqual(new Set([503]));
    await closing;
  });

  test('auto starts one worker per core', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { gateway: { workers: 'auto' } },
    });

    expect((await gateway.chat()).status).toBe(200);

    const count = availableParallelism();
    expect(watched.threads).toHaveLength(count === 1 ? 0 : count);
  });
});

/** Listens on a port for a moment; rejects with the system's error. */
async function take(port: number | undefined): Promise<void> {
  await using server = createServer();
  await once(server.listen(port, '127.0.0.1'), 'listening');
}
