import { afterEach, expect, test, vi } from 'vitest';
import { blockThread } from '#testkit/block-thread.ts';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

afterEach(() => void vi.useRealTimers());

test('requests that wait, and those that are refused, are told until there is room again', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, max_inflight: 1 }],
    config: { limits: { queue: 4 } },
  });
  const leaving = new AbortController();
  const init = { signal: leaving.signal };
  const first = gateway.chat({}, init).catch(() => null);
  await replica.nextRequest();
  const others = Array.from({ length: 5 }, () => gateway.chat({}, init).catch(() => null));
  expect(await untilCondition(gateway, 'overloaded')).toMatchObject({
    figures: { refused: 1 },
    sentence: expect.stringContaining('no replica has room'),
  });
  const { figures } = await untilCondition(gateway, 'waiting_long');
  expect(figures).toEqual({ waiting: 4, limit: 4 });

  leaving.abort();
  await Promise.all([first, ...others]);
  await untilOver(gateway, 'overloaded', 'waiting_long');
  expect(linesOf(gateway, 'waiting_long')).toEqual([
    '4 of 4 places for waiting requests are taken',
    'over: 4 of 4 places for waiting requests are taken',
  ]);
});

test('bodies that fill the memory for them are told until they are gone', async () => {
  await using replica = await startFakeReplica({ script: hang });
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, max_inflight: 1 }],
    config: { limits: { body: '10KiB', buffered: '25KiB' } },
  });
  {
    using opened = new DisposableStack();
    const body = JSON.stringify({ model: 'm', pad: 'x'.repeat(5_000) });
    for (let count = 0; count < 12; count += 1) {
      opened.use(await RawConnection.open(gateway.url)).write(postBytes('/v1/chat/completions', body));
    }
    const { sentence } = await untilCondition(gateway, 'buffers_near_limit');
    expect(sentence).toMatch(/^request bodies take 2\d.* KiB of 25 KiB$/);
    expect(await untilCondition(gateway, 'overloaded')).toMatchObject({
      sentence: expect.stringContaining('memory for request bodies'),
    });
  }
  await untilOver(gateway, 'buffers_near_limit');
});

test('open connections are told near their limit and at it', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { limits: { connections: 10 } } });
  const open = async () => {
    const connection = await RawConnection.open(gateway.url);
    connection.write('GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n');
    expect((await connection.readResponse()).status).toBe(200);
    return connection;
  };
  {
    using opened = new DisposableStack();
    for (let count = 0; count < 9; count += 1) opened.use(await open());
    expect(await untilCondition(gateway, 'connections_near_limit')).toMatchObject({
      sentence: '9 of 10 client connections are open',
    });
    opened.use(await open());
    expect(await untilCondition(gateway, 'connections_full')).toMatchObject({ severity: 'critical' });
  }
  await untilOver(gateway, 'connections_near_limit', 'connections_full');
});

test('a thread that is busy all the time is told until it has time again', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  let isBusy = true;
  const work = () => {
    blockThread(50);
    if (isBusy) setImmediate(work);
  };
  work();
  expect(await untilCondition(gateway, 'event_loop_behind')).toMatchObject({ subject: 'main' });
  isBusy = false;
  await untilOver(gateway, 'event_loop_behind');
});

test('a worker that ended is told', async () => {
  using watched = watchWorkerThreads();
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { gateway: { workers: 2 } } });
  await watched.kill(0);
  expect(await untilCondition(gateway, 'worker_replaced')).toMatchObject({ figures: { ended: 1 } });
});

test('a clock that was set is told', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica] });
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 7_260_000 });
  expect(await untilCondition(gateway, 'clock_stepped')).toMatchObject({
    sentence: 'the clock moved forward by 2 h',
  });
});
