import { describe, expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  type ReplicaExchange,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
import { runs } from '#testkit/runs.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const withGpus = ({ name, url }: Pick<FakeReplica, 'name' | 'url'>, gpu_count = 8) => ({
  name,
  url,
  gpu_count,
});

const startStream = async (exchange: ReplicaExchange) => {
  await exchange.head(200, ['Content-Type', 'text/event-stream']);
  await exchange.write('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n');
};

/** Reads an answer, complete or not. */
const read = async (response: Promise<Response>) => {
  try {
    return await (await response).text();
  } catch {
    return null;
  }
};

/** The sums of the metrics by a label, when nothing is in flight. */
async function readGpuSeconds(gateway: StartedGateway, name: string, label: string) {
  await askUntil(gateway.replicas, (replicas) => replicas.every(({ inflight }) => inflight === 0));
  return sumBy(parseSamples(await (await gateway.admin('/metrics')).text()), name, label);
}

const sum = (values: Iterable<number | undefined>) =>
  [...values].reduce<number>((all, one) => all + (one ?? 0), 0);

/** What the replicas took, and what the records and the requests without one say that they took. */
async function readBalance(gateway: StartedGateway) {
  const busy = await readGpuSeconds(gateway, 'gateway_replica_gpu_seconds_total', 'gateway_replica');
  const unrecorded = await readGpuSeconds(
    gateway,
    'gateway_replica_gpu_unrecorded_seconds_total',
    'gateway_replica',
  );
  return {
    busy: sum(Object.values(busy)),
    unrecorded: sum(Object.values(unrecorded)),
    recorded: sum(gateway.records.map(({ gpu_seconds }) => gpu_seconds)),
  };
}

describe('the GPU time of requests', () => {
  test('is the time on the replica by its GPUs, in the record and by model and tenant in the metrics', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [withGpus(replica)] });
    await read(gateway.chat({}, { headers: { 'X-Tenant': 'acme' } }));
    const { gpu_seconds = 0, e2e_ms } = await gateway.nextRecord();
    expect(gpu_seconds).toBeGreaterThan(0);
    expect(gpu_seconds).toBeLessThanOrEqual((8 * e2e_ms) / 1000);
    expect(await readGpuSeconds(gateway, 'gateway_gpu_seconds_total', 'gateway_tenant')).toEqual({
      acme: gpu_seconds,
    });
    expect(await readGpuSeconds(gateway, 'gateway_gpu_seconds_total', 'gen_ai_request_model')).toEqual({
      m: gpu_seconds,
    });
  });

  test('is unknown without a gpu_count', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    for (const configured of [replica, withGpus(replica, 0)]) {
      await using gateway = await startGateway({ replicas: [configured] });
      await read(gateway.chat());
      expect(await gateway.nextRecord()).not.toHaveProperty('gpu_seconds');
      const text = await (await gateway.admin('/metrics')).text();
      expect(text).not.toMatch(/^gateway\w*_gpu/m);
    }
  });

  test('is divided equally between the requests that are in flight at the same time', async () => {
    const held: ReplicaExchange[] = [];
    await using replica = await startFakeReplica({
      name: 'a',
      script: (exchange) => void held.push(exchange),
    });
    await using gateway = await startGateway({ replicas: [withGpus(replica)] });
    const answers = ['long', 'short'].map(async (feature, index) => {
      await replica.untilRequests(index);
      return await read(gateway.chat({}, { headers: { 'X-Feature': feature } }));
    });
    await replica.untilRequests(2);
    const busyUntilMs = performance.now() + 100;
    while (performance.now() < busyUntilMs) await gateway.stats();
    const answer = answerJson(COMPLETION);
    for (const [index, exchange] of held.toReversed().entries()) {
      await answer(exchange);
      await gateway.waitForRecords(index + 1);
    }
    await Promise.all(answers);
    const records = await gateway.waitForRecords(2);
    const [long, short] = ['long', 'short'].map((feature) => records.find((one) => one.feature === feature));
    // Half of what it was there for, and no more: the other one was there all the time.
    expect(short?.gpu_seconds).toBeGreaterThan(0.1 * 4);
    expect(short?.gpu_seconds).toBeLessThanOrEqual(((short?.e2e_ms ?? 0) * 4) / 1000);
    expect(long?.gpu_seconds).toBeGreaterThan(short?.gpu_seconds ?? 0);
    expect(long?.gpu_seconds).toBeLessThan(((long?.e2e_ms ?? 0) * 8) / 1000);
  });

  test('is neither lost nor counted twice by two workers, whatever becomes of the requests', async () => {
    /** Those of the clients, which one of the scripts lets leave. */
    const controllers = new Map<string, AbortController>();
    const scripts: ((exchange: ReplicaExchange) => Promise<void>)[] = [
      answerJson(COMPLETION) as (exchange: ReplicaExchange) => Promise<void>,
      async (exchange) => {
        await startStream(exchange);
        exchange.end('data: [DONE]\n\n');
      },
      async (exchange) => {
        await startStream(exchange);
        exchange.reset();
      },
      async (exchange) => exchange.reset(),
      answerJson({ error: 'busy' }, { status: 503 }) as (exchange: ReplicaExchange) => Promise<void>,
      async (exchange) => {
        await startStream(exchange);
        controllers.get(exchange.request.header('x-feature')[0] ?? '')?.abort();
      },
    ];
    let count = 0;
    const script = (exchange: ReplicaExchange) => scripts[count++ % scripts.length]?.(exchange);
    await using a = await startFakeReplica({ name: 'a', script });
    await using b = await startFakeReplica({ name: 'b', script });
    const refusing = { name: 'refusing', url: 'http://127.0.0.1:9' };
    await using gateway = await startGateway({
      replicas: [withGpus(a), withGpus(b, 3), withGpus(refusing, 1)],
      config: {
        gateway: { workers: 2 },
        retry: { statuses: [503], attempts: 1 },
        pass: ['POST /v1/other'],
      },
    });
    let recordedCount = 0;
    const requestCount = runs(40);
    const client = async (_: unknown, client: number) => {
      for (let request = 0; request < requestCount; request++) {
        const feature = `${client}-${request}`;
        const controller = new AbortController();
        controllers.set(feature, controller);
        const init = { signal: controller.signal, headers: { 'X-Feature': feature } };
        if (request % 5 === 3) await read(gateway.post('/v1/other', {}, init));
        else if (request % 5 === 4) await read(fetch(`${gateway.url}/v1/models`, init));
        else {
          recordedCount++;
          await read(gateway.chat({ stream: request % 2 === 0 }, init));
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    await gateway.waitForRecords(recordedCount);
    const { busy, unrecorded, recorded } = await readBalance(gateway);
    expect(recorded).toBeGreaterThan(0);
    expect(unrecorded).toBeGreaterThan(0);
    expect((recorded + unrecorded) / busy).toBeCloseTo(1, 6);
  });

  test('of requests that die with their worker belongs to no record', async () => {
    using workers = watchWorkerThreads();
    const held: ReplicaExchange[] = [];
    await using replica = await startFakeReplica({
      name: 'a',
      script: async (exchange) => {
        await startStream(exchange);
        held.push(exchange);
      },
    });
    await using gateway = await startGateway({
      replicas: [withGpus(replica)],
      config: { gateway: { workers: 2 } },
    });
    const answers = Array.from({ length: 24 }, () => read(gateway.chat({ stream: true })));
    await replica.untilRequests(24);
    await workers.kill(0);
    await workers.untilStarted(3);
    const [left] = await gateway.replicas();
    for (const exchange of held) exchange.end('data: [DONE]\n\n');
    await Promise.all(answers);
    await gateway.waitForRecords(left?.inflight ?? 0);
    const { busy, unrecorded, recorded } = await readBalance(gateway);
    expect(left?.inflight).toBeLessThan(24);
    expect(unrecorded).toBeGreaterThan(0);
    expect((recorded + unrecorded) / busy).toBeCloseTo(1, 6);
  });
});

describe('the cost of requests', () => {
  const withPrice = (replica: FakeReplica, gpu_hour_price: number) => ({
    ...withGpus(replica),
    gpu_hour_price,
  });

  /** The sum of a metric, when nothing is in flight. */
  const readSum = async (gateway: StartedGateway, name: string) =>
    sum(Object.values(await readGpuSeconds(gateway, name, 'gateway_currency')));

  test('is their GPU time at the price of the replica, in the record and in the metrics', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [withPrice(replica, 7_200)],
      config: { currency: 'EUR' },
    });
    await read(gateway.chat({}, { headers: { 'X-Tenant': 'acme' } }));
    const { gpu_seconds = 0, cost = 0, currency } = await gateway.nextRecord();
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeCloseTo(2 * gpu_seconds, 12);
    expect(currency).toBe('EUR');
    expect(await readGpuSeconds(gateway, 'gateway_cost_total', 'gateway_tenant')).toEqual({ acme: cost });
    expect(await readGpuSeconds(gateway, 'gateway_cost_total', 'gateway_currency')).toEqual({ EUR: cost });
    expect(await readGpuSeconds(gateway, 'gateway_replica_gpu_hourly_cost', 'gateway_replica')).toEqual({
      a: 7_200,
    });
    const idle = await readSum(gateway, 'gateway_replica_cost_idle_total');
    const idleSeconds = await readGpuSeconds(
      gateway,
      'gateway_replica_gpu_idle_seconds_total',
      'gateway_replica',
    );
    expect(idle).toBeGreaterThan(0);
    expect(idleSeconds.a).toBeGreaterThanOrEqual(idle / 2);
  });

  test('is that of all attempts, also at replicas with another price, and of those that have one', async () => {
    await using refusing = await startFakeReplica({
      name: 'refusing',
      script: answerJson({ error: 'busy' }, { status: 503 }),
    });
    await using free = await startFakeReplica({
      name: 'free',
      script: answerJson({ error: 'busy' }, { status: 503 }),
    });
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [withPrice(refusing, 7_200), withGpus(free), withPrice(replica, 3_600)],
      config: { retry: { statuses: [503], attempts: 2 } },
    });
    await read(gateway.chat());
    const { cost = 0, attempts } = await gateway.nextRecord();
    expect(attempts).toBe(3);
    const costs = await readGpuSeconds(gateway, 'gateway_replica_cost_total', 'gateway_replica');
    expect(Object.keys(costs)).toEqual(['refusing', 'a']);
    expect(sum(Object.values(costs))).toBeCloseTo(cost, 12);
  });

  test('is absent, and so are its metrics, where no replica has a price', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [withGpus(replica)] });
    await read(gateway.chat());
    const record = await gateway.nextRecord();
    expect(record.gpu_seconds).toBeGreaterThan(0);
    expect(record).not.toHaveProperty('cost');
    expect(record).not.toHaveProperty('currency');
    expect(await (await gateway.admin('/metrics')).text()).not.toMatch(/^gateway\w*_cost/m);
  });

  test('together with what is idle and unrecorded is the price of the time, over reloads and a worker that dies', async () => {
    using workers = watchWorkerThreads();
    const held: ReplicaExchange[] = [];
    await using replica = await startFakeReplica({
      name: 'a',
      script: async (exchange) => {
        await startStream(exchange);
        held.push(exchange);
      },
    });
    const replicaAt = (price: number) => ({ replicas: [withPrice(replica, price)] });
    await using gateway = await startGateway({ ...replicaAt(3_600), config: { gateway: { workers: 2 } } });
    const answers = Array.from({ length: 12 }, () => read(gateway.chat({ stream: true })));
    await replica.untilRequests(12);
    gateway.writeConfig(replicaAt(36_000));
    await gateway.reload();
    await workers.kill(0);
    await workers.untilStarted(3);
    const [left] = await gateway.replicas();
    gateway.writeConfig(replicaAt(7_200));
    await gateway.reload();
    for (const exchange of held) exchange.end('data: [DONE]\n\n');
    await Promise.all(answers);
    const records = await gateway.waitForRecords(left?.inflight ?? 0);
    const recorded = sum(records.map(({ cost }) => cost));
    const busy = await readSum(gateway, 'gateway_replica_cost_total');
    const unrecorded = await readSum(gateway, 'gateway_replica_cost_unrecorded_total');
    expect(unrecorded).toBeGreaterThan(0);
    expect((recorded + unrecorded) / busy).toBeCloseTo(1, 6);
    // More than at the lowest price all the time, and less than at the highest.
    const { busy: gpuSeconds } = await readBalance(gateway);
    expect(busy).toBeGreaterThan(gpuSeconds);
    expect(busy).toBeLessThan(10 * gpuSeconds);
  });
});
