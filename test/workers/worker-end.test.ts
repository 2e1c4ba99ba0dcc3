import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startFakeCollector } from '../support/fake-collector.ts';
import { type FakeReplica, hang, startFakeReplica, startFakeReplicas } from '../support/fake-replica.ts';
import { watchWorkerThreads } from '../support/worker-threads.ts';
import { balanceOf, chatAtOnce, startWorkers } from './start-workers.ts';

describe('a worker that ends', () => {
  test('because it was killed takes nothing along but its own requests, and is replaced', async () => {
    using watched = watchWorkerThreads();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const waiting = chatAtOnce(gateway, 40);
    await replica.untilRequests(40);

    await watched.kill(0);
    await gateway.untilLogged('worker ended');
    const [survivors] = await gateway.replicas();
    const { lost = 0, recorded } = await gateway.stats();
    expect(lost).toBeGreaterThan(0);
    expect({ recorded, inflight: survivors?.inflight }).toEqual({ recorded: lost, inflight: 40 - lost });

    await watched.kill(1);
    await watched.untilStarted(4);
    expect(await Promise.all(waiting)).toEqual(Array(40).fill(null));
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
    expect(await gateway.stats()).toMatchObject({ recorded: 40, lost: 40, exported: 0, queued: 0 });

    replica.answer(({ head, end: endResponse }) => head(200).then(() => endResponse()));
    await gateway.untilLogged('worker replaced');
    expect((await gateway.chat()).status).toBe(200);
    const balance = await balanceOf(gateway);
    expect(balance.begun).toBe(balance.accounted);
    expect((await gateway.close()).cutRequests).toBe(0);
  });

  test('by an exception that nobody caught tells of its requests first, and is replaced', async () => {
    using watched = watchWorkerThreads();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const waiting = chatAtOnce(gateway, 40);
    await replica.untilRequests(40);

    await watched.crash(0);
    const line = await gateway.untilLogged('worker ended');
    expect(JSON.parse(line)).toMatchObject({ err: { type: 'TypeError' }, lost: 0 });
    const [survivors] = await gateway.replicas();
    const { recorded = 0, lost } = await gateway.stats();
    expect(recorded).toBeGreaterThan(0);
    expect({ lost, inflight: survivors?.inflight }).toEqual({ lost: 0, inflight: 40 - recorded });

    await watched.crash(1);
    await watched.untilStarted(4);
    const answers = await Promise.all(waiting);
    expect(answers.map((answer) => answer?.status ?? 503)).toEqual(Array(40).fill(503));
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
    expect(await gateway.stats()).toMatchObject({ recorded: 40, lost: 0 });
    await gateway.close();
    expect(collector.spans).toHaveLength(40);
  });

  test('in the midst of load leaves every record accounted for', async () => {
    using watched = watchWorkerThreads();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    let isOver = false;
    let answered = 0;
    const client = async () => {
      while (!isOver) {
        const isWhole = await gateway.chat().then(
          (answer) =>
            answer.text().then(
              () => true,
              () => false,
            ),
          () => false,
        );
        if (isWhole) answered++;
      }
    };
    const clients = Array.from({ length: 16 }, client);

    for (let kill = 0; kill < 4; kill++) {
      await replica.untilRequests(replica.requests.length + 100);
      await watched.kill(kill);
      await watched.untilStarted(kill + 3);
      const { begun, accounted } = await balanceOf(gateway);
      expect(begun).toBe(accounted);
    }
    isOver = true;
    await Promise.all(clients);
    await gateway.close();

    const received = new Set(collector.spans.map(({ spanId }) => spanId));
    expect(received.size).toBe(collector.spans.length);
    expect(gateway.records).toHaveLength(received.size);
    // A client can have its answer when the record is lost with the worker, but not the other way round.
    expect(answered).toBeGreaterThanOrEqual(100);
  });

  test('because it stood still holds up a reload for half a minute at most', async () => {
    using watched = watchWorkerThreads();
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas as unknown as [FakeReplica, FakeReplica];
    await using gateway = await startWorkers(2, { replicas: [a] });
    await watched.block(1, 3_600_000);
    gateway.writeConfig({ replicas: [b] });
    const tookOver = new Promise<void>((resolve) => {
      watched.threads[0]?.on('message', ({ kind }) => kind === 'done' && resolve());
    });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());

    const reloaded = gateway.reload();
    await tookOver;
    await vi.advanceTimersByTimeAsync(29_000);
    expect(gateway.logLines.join()).not.toContain('worker ended');
    let isOver = false;
    const over = Promise.all([reloaded, gateway.untilLogged('worker replaced')]).finally(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(1_000);
    // The new worker has its own times to keep: they pass as fast as it works.
    while (!isOver) await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();

    expect((await over)[0].status).toBe(200);
    for (const answer of await Promise.all(chatAtOnce(gateway, 10))) expect(answer?.status).toBe(200);
    expect(a.requests).toEqual([]);
    expect(b.requests).toHaveLength(10);
  });

  test('again and again is replaced ever later', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, { replicas: [replica] });

    for (let life = 0; life < 3; life++) {
      await watched.kill(life === 0 ? 0 : life + 1);
      await watched.untilStarted(life + 3);
    }

    const ends = gateway.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'worker ended');
    expect(ends).toMatchObject([0, 100, 200].map((restart_ms) => ({ worker: 1, restart_ms })));
    for (const answer of await Promise.all(chatAtOnce(gateway, 10))) expect(answer?.status).toBe(200);
  });
});
