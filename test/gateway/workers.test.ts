import { describe, expect, test, vi } from 'vitest';
import { startFakeCollector } from '../support/fake-collector.ts';
import {
  chatChunk,
  DONE,
  type FakeReplica,
  hang,
  refusedUrlBeside,
  startFakeReplica,
  startFakeReplicas,
} from '../support/fake-replica.ts';
import { postBytes, RawConnection } from '../support/raw-http.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '../support/start-gateway.ts';
import { watchWorkerThreads } from '../support/worker-threads.ts';

// Each worker loads the whole data plane, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const POST = { method: 'POST' };

/** A gateway of several workers; sections of the configuration are laid over this one. */
function startWorkers(
  workers: number,
  { config = {}, ...options }: StartGatewayOptions,
): Promise<StartedGateway> {
  return startGateway({ ...options, config: { ...config, gateway: { workers, ...config.gateway } } });
}

/** So many requests at once, each on a connection of its own, so that every worker gets some. */
const chatAtOnce = (gateway: StartedGateway, count: number, init: RequestInit = {}) =>
  Array.from({ length: count }, () => gateway.chat({}, init).catch(() => null));

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);

/** Both sides of what always holds, and how many records wait. */
async function balanceOf(gateway: StartedGateway) {
  const { recorded, restored, exported, dropped, rejected, queued, spooled, lost } = await gateway.stats();
  const accounted = [exported, dropped, rejected, queued, spooled, lost].map((count) => count ?? 0);
  return { begun: (recorded ?? 0) + (restored ?? 0), accounted: sumOf(accounted), queued: queued ?? 0 };
}

const spreadOf = (replicas: readonly FakeReplica[]) => {
  const counts = replicas.map(({ requests }) => requests.length);
  return Math.max(...counts) - Math.min(...counts);
};

describe('several workers are one gateway', () => {
  test.each([2, 3])('%s of them take even turns', async (workers) => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using c = await startFakeReplica({ name: 'c' });
    await using gateway = await startWorkers(workers, { replicas: [a, b, c] });

    for (const answer of await Promise.all(chatAtOnce(gateway, 100))) {
      expect(answer?.status).toBe(200);
      await answer?.text();
    }

    expect(spreadOf([a, b, c])).toBeLessThanOrEqual(1);
    await gateway.waitForRecords(100);
    const { recorded, lost } = await gateway.stats();
    expect({ recorded, lost }).toEqual({ recorded: 100, lost: 0 });
  });

  test('turns stay even when one replica refuses', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using c = await startFakeReplica({ name: 'c' });
    const down = { name: 'down', url: refusedUrlBeside(a) };
    await using gateway = await startWorkers(2, { replicas: [a, down, b, c] });

    for (const answer of await Promise.all(chatAtOnce(gateway, 100))) expect(answer?.status).toBe(200);

    expect(spreadOf([a, b, c])).toBeLessThanOrEqual(1);
  });

  test('what is in flight is the sum over them', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica] });
    const leave = new AbortController();
    const waiting = chatAtOnce(gateway, 30, { signal: leave.signal });
    await replica.untilRequests(30);

    expect(await gateway.replicas()).toMatchObject([{ inflight: 30 }]);

    leave.abort();
    await Promise.all(waiting);
    await gateway.waitForRecords(30);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });

  test('records come whole, those of large bodies too', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const content = 'x'.repeat(100_000);

    await (await gateway.chat({ messages: [{ role: 'user', content }] })).text();
    await collector.waitFor(({ spans }) => spans.length === 1);

    const [record] = await gateway.waitForRecords(1);
    expect(record).toMatchObject({ prompt_chars: content.length, status: 200, replica: replica.name });
    expect(collector.spans[0]?.attributes['gateway.request_id']).toBe(record?.request_id);
    expect(collector.spans[0]?.resource['service.name']).toBe('spangate');
    const { records } = (await (await gateway.admin('/admin/records')).json()) as { records: object[] };
    expect(records).toMatchObject([{ request_id: record?.request_id }]);
  });

  test('lines of the log come from one place, and say which worker they are of', async () => {
    await using replica = await startFakeReplica();
    const down = { name: 'down', url: refusedUrlBeside(replica) };
    await using gateway = await startWorkers(2, { replicas: [down, replica] });

    await (await gateway.chat()).text();

    expect(JSON.parse(await gateway.untilLogged('replica unreachable'))).toMatchObject({
      level: 40,
      worker: expect.toBeOneOf([1, 2]),
      replica: 'down',
    });
  });
});

describe('a drain', () => {
  test('reaches every worker before it is answered, in the midst of requests', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const [a, ...others] = replicas as unknown as [FakeReplica, ...FakeReplica[]];
    await using gateway = await startWorkers(3, { replicas: [a, ...others] });
    let isOver = false;
    const client = async () => {
      while (!isOver) await (await gateway.chat()).text();
    };
    const clients = Array.from({ length: 16 }, client);
    await a.untilRequests(5);

    for (let round = 0; round < 10; round++) {
      await gateway.admin('/admin/replicas/a/drain', POST);
      const reached = a.requests.length;
      const before = sumOf(others.map(({ requests }) => requests.length));
      await others[0]?.untilRequests(Math.ceil(before / 2) + 20);
      expect(a.requests.length).toBe(reached);
      await gateway.admin('/admin/replicas/a/undrain', POST);
      await a.untilRequests(reached + 3);
    }

    isOver = true;
    await Promise.all(clients);
  });

  test('holds for a worker that takes the place of another', async () => {
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
});

describe('a worker that ends', () => {
  test.each([
    ['killed', 'kill'],
    ['by an exception that nobody caught', 'crash'],
  ] as const)('%s takes nothing along but its own requests, and is replaced', async (_how, end) => {
    using watched = watchWorkerThreads();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const waiting = chatAtOnce(gateway, 40);
    await replica.untilRequests(40);

    await watched[end](0);
    await gateway.untilLogged('worker ended');
    const [survivors] = await gateway.replicas();
    const { lost = 0, recorded } = await gateway.stats();
    expect(lost).toBeGreaterThan(0);
    expect({ recorded, inflight: survivors?.inflight }).toEqual({ recorded: lost, inflight: 40 - lost });

    await watched[end](1);
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
});

describe('bounds hold in total', () => {
  test('of the queue, while the collector is away', async () => {
    await using collector = await startFakeCollector();
    const { url } = collector;
    await collector.close();
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(3, {
      replicas: [replica],
      collector: { url },
      config: { export: { queue_size: 5, batch_size: 5 }, shutdown: { flush: '1ms' } },
    });
    const sending = Promise.all(chatAtOnce(gateway, 60));
    let isSending = true;
    const watching = (async () => {
      while (isSending) {
        const { begun, accounted, queued } = await balanceOf(gateway);
        expect(begun).toBe(accounted);
        expect(queued).toBeLessThanOrEqual(5);
      }
    })();
    for (const answer of await sending) await answer?.text();
    await gateway.waitForRecords(60);
    isSending = false;
    await watching;

    const { recorded, queued, dropped } = await gateway.stats();
    expect({ recorded, queued, dropped }).toEqual({ recorded: 60, queued: 5, dropped: 55 });
    await gateway.untilLogged('queue full: dropping records');
    expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  });

  test('of client connections', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { limits: { connections: 5 } },
    });
    using opened = new DisposableStack();
    const statuses: number[] = [];
    for (let count = 0; count < 20; count++) {
      const connection = opened.use(await RawConnection.open(gateway.url));
      connection.write('GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n');
      statuses.push((await connection.readResponse()).status);
    }

    expect(statuses).toEqual([...Array(5).fill(200), ...Array(15).fill(0)]);
  });

  test('of request bodies in memory', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startWorkers(2, {
      replicas: [replica],
      config: { limits: { body: '10KiB', buffered: '25KiB' } },
    });
    using opened = new DisposableStack();
    const body = JSON.stringify({ model: 'm', pad: 'x'.repeat(5_000) });
    for (let count = 1; count <= 20; count++) {
      const connection = opened.use(await RawConnection.open(gateway.url));
      connection.write(postBytes('/v1/chat/completions', body));
      // The first five wait at the replica, each later one is refused.
      await (count <= 5 ? replica.untilRequests(count) : gateway.waitForRecords(count - 5));
    }

    expect(replica.requests).toHaveLength(5);
    expect(gateway.records).toHaveLength(15);
    expect(gateway.records.every(({ error_type }) => error_type === 'overloaded')).toBe(true);
  });
});

describe('starting and stopping', () => {
  test.each([1, 2])('a port that a gateway of %s workers has is one clear line', async (workers) => {
    await using replica = await startFakeReplica();
    await using gateway = await startWorkers(workers, { replicas: [replica] });
    const listen = gateway.url.replace('http://', '');

    await expect(startWorkers(2, { replicas: [replica], config: { gateway: { listen } } })).rejects.toThrow(
      /^gateway\.listen 127\.0\.0\.1:\d+: the port is already in use$/,
    );
    expect((await gateway.chat()).status).toBe(200);
  });

  test('a shutdown waits for the requests of all workers, and delivers all records', async () => {
    const released = Promise.withResolvers<void>();
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({
      script: async ({ request, head, write, end }) => {
        await request.body;
        await head(200, ['Content-Type', 'text/event-stream']);
        await write(chatChunk('x'));
        await released.promise;
        end(DONE);
      },
    });
    await using gateway = await startWorkers(2, { replicas: [replica], collector });
    const streams = await Promise.all(chatAtOnce(gateway, 20));
    using opened = new DisposableStack();
    const idle = await Promise.all(
      Array.from({ length: 8 }, async () => opened.use(await RawConnection.open(gateway.url))),
    );
    const closing = gateway.close();
    await Promise.all(idle.map((connection) => connection.readToClose()));

    released.resolve();
    const texts = await Promise.all(streams.map((stream) => stream?.text()));

    expect(await closing).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
    expect(texts).toEqual(Array(20).fill(chatChunk('x') + DONE));
    expect(collector.spans).toHaveLength(20);
  });

  test('requests whose time is up are cut in all workers, and counted', async () => {
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

  test('auto is as many as there are cores', async () => {
    using watched = watchWorkerThreads();
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { gateway: { workers: 'auto' } },
    });

    expect((await gateway.chat()).status).toBe(200);
    const { availableParallelism } = await import('node:os');
    const count = availableParallelism();
    expect(watched.threads).toHaveLength(count === 1 ? 0 : count);
  });
});
