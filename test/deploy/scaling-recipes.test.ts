import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { EventLog } from '#testkit/event-log.ts';
import { hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { requirePrometheus, startPrometheus } from '#testkit/servers/real-prometheus.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const READ_TOKEN = 'read-token-of-prometheus';

/** What OpenCost tells of a node with GPUs at 2.50 each, of which the engine's pod has two. */
const OPENCOST = `# TYPE node_gpu_hourly_cost gauge
node_gpu_hourly_cost{node="gpu-1",instance_type="g5.12xlarge"} 2.5
# TYPE container_gpu_allocation gauge
container_gpu_allocation{namespace="llm",pod="vllm-0",container="vllm",node="gpu-1"} 2
container_gpu_allocation{namespace="other",pod="x",container="x",node="gpu-1"} 1
`;

const readRecipe = async (name: string) =>
  parse(await readFile(join(import.meta.dirname, '../../deploy/recipes', name), 'utf8'));

/** One target with the metrics of a gateway and those of OpenCost. `untilStored`: what is counted now is stored. */
async function startTarget(gateway: StartedGateway) {
  const scrapes = new EventLog<number>();
  const server = createServer(async (_, response) => {
    const readMetrics = async () => (await gateway.admin('/metrics')).text();
    // The gateway of a test that is over may end in the middle of a scrape.
    const metrics = await readMetrics().catch(() => null);
    if (metrics === null) return void response.destroy();
    response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4' });
    response.end(metrics + OPENCOST, () => scrapes.push(1));
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server));
  return { target: `127.0.0.1:${port}`, untilStored: () => scrapes.count(scrapes.items.length + 3) };
}

test('the queries of the recipe for KEDA count who is in flight and who waits', async (context) => {
  await requirePrometheus(context);
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [{ name: 'vllm-0', url: replica.url, max_inflight: 4 }],
    readToken: READ_TOKEN,
  });
  const { target, untilStored } = await startTarget(gateway);
  await using prometheus = await startPrometheus(target, READ_TOKEN);
  const { spec } = await readRecipe('keda.yaml');
  const [inflight, waiting] = spec.triggers.map(
    ({ metadata }: { metadata: { query: string } }) => metadata.query,
  );
  const numberOf = async (query: string) => Number((await prometheus.query(query))[0]?.value[1]);

  await untilStored();
  expect([await numberOf(inflight), await numberOf(waiting)]).toEqual([0, 0]);
  replica.answer(hang);
  const leaving = new AbortController();
  for (let count = 0; count < 7; count++)
    void gateway.chat({}, { signal: leaving.signal }).catch(() => undefined);
  // Four in flight, three that wait: 3 + 4 / 4.
  await expect.poll(async () => [await numberOf(inflight), await numberOf(waiting)]).toEqual([4, 4]);
  leaving.abort();
});

test('the rules of the recipe for OpenCost divide what GPUs cost among the tenants', async (context) => {
  await requirePrometheus(context);
  await using replica = await startSimulatedReplica({ name: 'vllm-0', gapMs: 2 });
  await using gateway = await startGateway({
    replicas: [{ ...replica, gpu_count: 2 }],
    readToken: READ_TOKEN,
  });
  const { target, untilStored } = await startTarget(gateway);
  await using prometheus = await startPrometheus(target, READ_TOKEN);
  const { spec } = await readRecipe('opencost.yaml');
  const rules = new Map<string, string>(
    spec.groups[0].rules.map(({ record, expr }: { record: string; expr: string }) => [record, expr]),
  );
  const costsOf = async (name: string) =>
    Object.fromEntries(
      (await prometheus.query(rules.get(name) ?? '')).map(({ metric, value }) => [
        metric.gateway_tenant ?? '',
        Number(value[1]),
      ]),
    );
  const ask = async (tenant: string) =>
    (await gateway.chat({ stream: true }, { headers: { 'X-Tenant': tenant } })).text();

  // A rate needs a sample before and one after.
  await Promise.all(['acme', 'umbrella'].map(ask));
  await gateway.waitForRecords(2);
  await untilStored();
  await Promise.all(['acme', 'acme', 'acme', 'umbrella'].map(ask));
  await gateway.waitForRecords(6);
  await untilStored();

  expect(await costsOf('spangate:gpu_allocated:hourly_cost')).toEqual({ '': 5 });
  const shared = await costsOf('spangate:gpu_by_tenant:hourly_cost');
  expect(Object.keys(shared).toSorted()).toEqual(['acme', 'umbrella']);
  expect((shared.acme ?? 0) + (shared.umbrella ?? 0)).toBeCloseTo(5);
  const used = await costsOf('spangate:gpu_used_by_tenant:hourly_cost');
  expect((used.acme ?? 0) / (used.umbrella ?? 1)).toBeCloseTo((shared.acme ?? 0) / (shared.umbrella ?? 1));
});
