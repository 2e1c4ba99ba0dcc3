import { onTestFinished } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import type { FakeApiServer } from '#testkit/servers/fake-api-server.ts';
import type { FakePod } from '#testkit/servers/fake-pods.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** Nothing is looked up again by itself. */
export const NO_POLL = { discovery: { dns_interval: '1h', models_interval: '1h' } };

type Pods<Count extends 1 | 2 | 3> = {
  readonly 1: readonly [FakeReplica];
  readonly 2: readonly [FakeReplica, FakeReplica];
  readonly 3: readonly [FakeReplica, FakeReplica, FakeReplica];
}[Count];

/** Starts pods for one test, at one port of 127.0.0.1, 127.0.0.2 and so on. `pod` describes one as an EndpointSlice does. */
export async function startPods<Count extends 1 | 2 | 3>(count: Count) {
  const first = await startFakeReplica();
  const port = Number(new URL(first.url).port);
  const others = Array.from({ length: count - 1 }, (_, index) =>
    startFakeReplica({ address: `127.0.0.${index + 2}`, port }),
  );
  const pods = [first, ...(await Promise.all(others))];
  onTestFinished(async () => {
    await Promise.all(pods.map((pod) => pod.close()));
  });
  const pod = (index: number, more: Partial<FakePod> = {}): FakePod => ({
    name: `vllm-${index}`,
    address: `127.0.0.${index + 1}`,
    ...more,
  });
  return { pods: pods as unknown as Pods<Count>, pod, ports: [{ name: 'http', port, protocol: 'TCP' }] };
}

/** An entry of the list of replicas for the Service `vllm`. */
export const toService = (api: Pick<FakeApiServer, 'url'>, more: object = {}, entry: object = {}) => ({
  name: 'vllm',
  models: ['m'],
  engine: 'openai',
  kubernetes: { service: 'vllm', namespace: 'llm', api_server: api.url, ...more },
  ...entry,
});

/** Starts a gateway with that entry alone. */
export const startWith = (api: FakeApiServer, more: object = {}) =>
  startGateway({ replicas: [], services: [toService(api, more)], config: NO_POLL });

/** The names of the replicas of a gateway. */
export const namesOf = async (gateway: StartedGateway) => (await gateway.replicas()).map(({ name }) => name);

/** Resolves when the gateway has these replicas. Each look is a call of the admin API. */
export async function untilNames(gateway: StartedGateway, names: readonly string[]): Promise<void> {
  await askUntil(
    () => namesOf(gateway),
    (found) => JSON.stringify(found) === JSON.stringify(names),
  );
}
