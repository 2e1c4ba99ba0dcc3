import { describe, expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { balanceOf, chatAtOnce, requestSpansOf, startWorkers } from './start-workers.ts';

/** Replica, gateway and clients are one process: on a busy machine it takes a while to accept a connection. */
const PATIENT = { timeouts: { connect: '30s' } };

describe('a worker that ends', () => {
  test('because it was killed loses only its own requests, and is replaced', async () => {
    using watched = watchWorkerThreads();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica], collector, config: PATIENT });
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

  test('by an uncaught exception records its requests first, and is replaced', async () => {
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
    expect(requestSpansOf(collector)).toHaveLength(40);
  });

  test('repeatedly is replaced after longer and longer delays', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, { replicas: [replica] });

    for (let life = 0; life < 3; life++) {
      await watched.kill(life === 0 ? 0 : life + 1);
      await watched.untilStarted(life + 3);
    }

    const ends = gateway.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'worker ended');
    expect(ends.map(({ worker }) => worker)).toEqual([1, 1, 1]);
    // Where the gateway takes ten seconds to start, the first life was a long one.
    const series = [
      [0, 100, 200],
      [0, 0, 100],
    ];
    expect(series).toContainEqual(ends.map(({ restart_ms }) => restart_ms));
    for (const answer of await Promise.all(chatAtOnce(gateway, 10))) expect(answer?.status).toBe(200);
  });
});
