import { describe, expect, test } from 'vitest';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  type ReplicaExchange,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
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
  while ((await gateway.replicas()).some(({ inflight }) => inflight > 0));
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
    const refusing = { name: 'refusing', url: `http://127.0.0.1:${await findFreePort()}` };
    await using gateway = await startGateway({
      replicas: [withGpus(a), withGpus(b, 3), withGpus(refusing, 1)],
      config: {
        gateway: { workers: 2 },
        retry: { statuses: [503], attempts: 1 },
        pass: ['POST /v1/other'],
      },
    });
    let recordedCount = 0;
    const client = async (_: unknown, client: number) => {
      for (let request = 0; request < 40; request++) {
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
