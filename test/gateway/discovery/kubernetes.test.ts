import { expect, test } from 'vitest';
import { answerJson, COMPLETION, chatChunk, DONE, type FakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import type { FakePod } from '#testkit/servers/fake-pods.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';
import { NO_POLL, namesOf, startPods, startWith, toService, untilNames } from './pods.ts';

test('the ready pods of a Service are replicas under their own names, on their nodes', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 'vllm-a', ports, pods: [pod(1, { node: 'gpu-7' })] });
  api.put({ name: 'vllm-b', ports, pods: [pod(0), pod(7, { ready: false })] });
  await using gateway = await startWith(api);
  expect(await gateway.replicas()).toMatchObject([
    { name: 'vllm-0', url: pods[0].url, host: '127.0.0.1' },
    { name: 'vllm-1', url: pods[1].url, host: 'gpu-7' },
  ]);
  expect(await turnsOf(gateway, 4)).toEqual(['vllm-0', 'vllm-1', 'vllm-0', 'vllm-1']);
  const [list] = api.calls;
  expect(list?.path).toBe('/apis/discovery.k8s.io/v1/namespaces/llm/endpointslices');
  expect(list?.search.get('labelSelector')).toBe('kubernetes.io/service-name=vllm');
  expect(list?.authorization).toBeUndefined(); // no token without TLS
});

test('a pod that terminates gets no new request, and its stream ends in order', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  const gate = createStreamGate([chatChunk('a')], chatChunk('b', 'stop') + DONE);
  pods[0].answerOnce(gate.script);
  const running = gateway.chat({ stream: true });
  await pods[0].untilRequests(1);

  await api.untilWatched();
  api.put({ name: 's', ports, pods: [pod(0, { ready: false, terminating: true }), pod(1)] });
  await gateway.untilLogged('"removed":["vllm-0"]');
  expect(await turnsOf(gateway, 4)).toEqual(Array(4).fill('vllm-1'));
  expect(await gateway.replicas()).toMatchObject([
    { name: 'vllm-1', drained: false, removing: false },
    { name: 'vllm-0', drained: true, removing: true, inflight: 1, safe_to_stop: false },
  ]);
  gate.open();
  expect(await (await running).text()).toContain('[DONE]');
  await gateway.waitForRecords(5);
  expect(await namesOf(gateway)).toEqual(['vllm-1']);
  expect(pods[0].requests).toHaveLength(1);
});

test('a terminating pod has left before a new pod of the same event is probed', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  const service = toService(api, {}, { models: 'auto', engine: 'auto' });
  await using gateway = await startGateway({ replicas: [], services: [service], config: NO_POLL });
  await api.untilWatched();
  const seen = Promise.withResolvers<readonly string[]>();
  pods[1].answerProbes(async () => {
    // A removed replica is listed until every worker uses a list without it.
    seen.resolve(await namesOf(gateway));
  });
  api.put({ name: 's', ports, pods: [pod(0, { terminating: true }), pod(1)] });
  expect(await seen.promise).toEqual(['vllm-1']);
});

test('a pod leaves while it is not ready, and its drain survives its restart at the same address', async () => {
  const { pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0), pod(1)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  await gateway.admin('/admin/replicas/vllm-1/drain', { method: 'POST' });
  api.put({ name: 's', ports, pods: [pod(0), pod(1, { ready: false })] });
  await untilNames(gateway, ['vllm-0']);
  api.put({ name: 's', ports, pods: [pod(0), pod(1, { uid: 'another' })] });
  await untilNames(gateway, ['vllm-0', 'vllm-1']);
  expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: true }]);
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-0']);
});

test('a pod with another uid is another server, even at the same address', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  api.put({ name: 's', ports, pods: [pod(0, { uid: 'another' })] });
  expect(await gateway.untilLogged('replicas changed')).toContain('"changed":["vllm-0"],"removed":[]');
});

test('slices come, go and move pods to each other, in events that are split anywhere', async () => {
  const { pod, ports } = await startPods(3);
  await using api = await startFakeApiServer();
  api.splitEvents();
  api.put({ name: 'a', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  api.put({ name: 'b', ports, pods: [pod(1), pod(2)] });
  await untilNames(gateway, ['vllm-0', 'vllm-1', 'vllm-2']);
  api.put({ name: 'a', ports, pods: [pod(0), pod(2)] });
  api.put({ name: 'b', ports, pods: [pod(1)] });
  api.delete('b');
  await untilNames(gateway, ['vllm-0', 'vllm-2']);
  api.put({ name: 'a', ports, pods: [] });
  await untilNames(gateway, []);
  expect((await gateway.chat()).status).toBe(502); // not 404: the model may come back
});

test('a reload ends the watch of a Service that is gone', async () => {
  const { pods, pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  const closed = Promise.withResolvers<void>();
  api.put({ name: 's', ports, pods: [pod(0)] });
  api.answer('watch', (response) => {
    response.writeHead(200).flushHeaders();
    response.on('close', closed.resolve);
  });
  await using gateway = await startWith(api);
  await api.untilCalls(1, ({ isWatch }) => isWatch);
  gateway.writeConfig({ replicas: [{ name: 'own', url: pods[0].url }], services: [] });
  expect((await gateway.reload()).status).toBe(200);
  await closed.promise;
  expect(await namesOf(gateway)).toEqual(['own']);
});

test('three pods are restarted one after the other under load, and no request fails', async () => {
  const { pods, pod, ports } = await startPods(3);
  const up = [true, true, true];
  const hits: string[] = [];
  pods.forEach((replica, index) => {
    replica.answer(async (exchange) => {
      if (!up[index]) hits.push(`vllm-${index}`);
      await answerJson(COMPLETION)(exchange);
    });
  });
  await using api = await startFakeApiServer();
  const states: Partial<FakePod>[] = [{}, {}, {}];
  const put = () => api.put({ name: 's', ports, pods: states.map((state, index) => pod(index, state)) });
  put();
  await using gateway = await startWith(api);
  await api.untilWatched();
  const statuses: number[] = [];
  let isOver = false;
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const response = await gateway.chat();
      statuses.push(response.status);
      await response.arrayBuffer();
    }
  });
  for (const index of [0, 1, 2]) {
    const served = (replica: FakeReplica | undefined) => replica?.requests.length ?? 0;
    states[index] = { terminating: true, ready: false };
    put();
    const others = [0, 1, 2].filter((each) => each !== index).map((each) => `vllm-${each}`);
    // Requests in flight have ended once it is no longer listed.
    await untilNames(gateway, others);
    up[index] = false;
    const before = served(pods[index]);
    await pods[(index + 1) % 3]?.untilRequests(served(pods[(index + 1) % 3]) + 10);
    expect(served(pods[index])).toBe(before);
    up[index] = true;
    states[index] = { uid: `again-${index}` };
    put();
    await pods[index]?.untilRequests(before + 5);
  }
  isOver = true;
  await Promise.all(clients);
  expect(hits).toEqual([]);
  expect(new Set(statuses)).toEqual(new Set([200]));
});
