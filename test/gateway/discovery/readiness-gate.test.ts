import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import { createAuthority } from '#testkit/certificates.ts';
import { answerJson, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
import { type FakeApiServer, startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';
import { NO_POLL, namesOf, startPods, toService, untilNames } from './pods.ts';

const ANSWERS = 'spangate.dev/answers';
const GATED = { gates: [ANSWERS] };

const gated = (api: Pick<FakeApiServer, 'url'>, entry: object = {}) =>
  toService(api, { readiness_gate: true }, entry);

const start = (api: FakeApiServer, entry: object = {}) =>
  startGateway({ replicas: [], services: [gated(api, entry)], config: NO_POLL });

interface GateAnswer {
  readonly state: string;
  readonly error_code: string | null;
  readonly confirmed: number;
  readonly waiting: number;
  readonly waiting_pods: readonly { readonly pod: string; readonly problem: string | null }[];
}

/** The readiness gate of the first source. */
async function gateOf(gateway: StartedGateway): Promise<GateAnswer> {
  const answer = await (await gateway.admin('/admin/replicas')).json();
  return (answer as { sources: { readiness_gate: GateAnswer }[] }).sources[0]?.readiness_gate as GateAnswer;
}

/** Resolves when the gate of the first source is like this. Each look is a call of the admin API. */
function untilGate(gateway: StartedGateway, isMet: (gate: GateAnswer) => boolean): Promise<GateAnswer> {
  return askUntil(() => gateOf(gateway), isMet);
}

/** Answers the next patch in another way. */
function answerOnce(api: FakeApiServer, answer: (response: ServerResponse) => void): void {
  api.answer('patch', (response) => {
    api.answer('patch', null);
    answer(response);
  });
}

/** Pods with the gate, at one port of as many addresses, which one server has. */
async function startManyPods(count: number) {
  const replica = await startFakeReplica({ address: '0.0.0.0' });
  onTestFinished(() => replica.close());
  const port = { name: 'http', port: Number(new URL(replica.url).port), protocol: 'TCP' };
  const pods = Array.from({ length: count }, (_, index) => ({
    name: `vllm-${100 + index}`,
    address: `127.0.1.${index + 1}`,
    ...GATED,
  }));
  return { replica, port, pods };
}

const status = (code: number, headers: Readonly<Record<string, string>> = {}) => {
  return (response: ServerResponse) =>
    void response.writeHead(code, headers).end(JSON.stringify({ kind: 'Status', code }));
};

const refuse: Script = (exchange) => exchange.reset();

test('a pod that is not ready gets its condition once it has listed its models, and then requests', async () => {
  const { pods, pod, ports } = await startPods(2);
  pods[1]?.list({ models: ['another'] });
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0), pod(1, GATED)] });
  await using gateway = await start(api);
  await api.untilWatched();

  expect(await gateway.untilLogged('pod not confirmed yet')).toContain('it does not list m"');
  expect(await gateOf(gateway)).toMatchObject({
    condition: ANSWERS,
    state: 'unknown',
    since: null,
    confirmed: 0,
    waiting: 1,
    waiting_pods: [{ pod: 'vllm-1', problem: 'it does not list m' }],
  });
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-0']);
  expect(api.patches).toEqual([]);

  pods[1]?.list({ models: ['m'] });
  await untilNames(gateway, ['vllm-0', 'vllm-1']);
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-1']);
  expect(api.patches).toEqual([
    {
      pod: 'vllm-1',
      contentType: 'application/strategic-merge-patch+json',
      body: {
        metadata: { uid: 'uid-of-vllm-1' },
        status: {
          conditions: [
            {
              type: ANSWERS,
              status: 'True',
              reason: 'Answers',
              message: expect.any(String),
              lastTransitionTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
            },
          ],
        },
      },
    },
  ]);
  expect(await gateway.untilLogged('"msg":"pod confirmed"')).toContain('"pod":"vllm-1"');
  expect(await gateOf(gateway)).toMatchObject({ state: 'ok', confirmed: 1, waiting: 0, waiting_pods: [] });
  const samples = parseSamples(await (await gateway.admin('/metrics')).text());
  for (const [metric, value] of [
    ['gateway_readiness_gate_up', 1],
    ['gateway_readiness_gate_waiting', 0],
    ['gateway_readiness_gate_confirmed_total', 1],
  ] as const) {
    expect(sumBy(samples, metric, 'gateway_discovery_source'), metric).toEqual({ vllm: value });
  }
});

test('without the key, no pod is asked before it is ready, and none is written to', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0), pod(1, GATED)] });
  await using gateway = await startGateway({ replicas: [], services: [toService(api)], config: NO_POLL });
  await api.untilWatched();
  // A pod with a gate of another gateway turns ready after any probe of the first one.
  await pods[0]?.untilProbes(1);
  expect(await gateOf(gateway)).toBeNull();
  expect(pods[1]?.probes).toEqual([]);
  expect(api.patches).toEqual([]);
  expect(await (await gateway.admin('/metrics')).text()).not.toContain('gateway_readiness_gate');
});

test('a pod that is ready is not written to, and one that terminates not even asked', async () => {
  const { pods, pod, ports } = await startPods(3);
  await using api = await startFakeApiServer();
  const going = pod(1, { ready: false, terminating: true, ...GATED });
  api.put({ name: 's', ports, pods: [pod(0), going, pod(2, GATED)] });
  await using gateway = await start(api);
  await untilNames(gateway, ['vllm-0', 'vllm-2']);
  expect(api.patches.map((patch) => patch.pod)).toEqual(['vllm-2']);
  expect(pods[1]?.probes).toEqual([]);
});

test('a pod that was held back begins with the ramp of undrained replicas, and one that was ready without', async () => {
  const { pod, ports } = await startPods(3);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  const config = { ...NO_POLL, rollout: { ramp: '1h' } };
  await using gateway = await startGateway({ replicas: [], services: [gated(api)], config });
  await api.untilWatched();
  api.put({ name: 's', ports, pods: [pod(0), pod(1), pod(2, GATED)] });
  await untilNames(gateway, ['vllm-0', 'vllm-1', 'vllm-2']);
  expect(await gateway.replicas()).toMatchObject([
    { ramp: null },
    { ramp: null },
    { ramp: { share: expect.closeTo(0.05, 2), duration_ms: 3_600_000 } },
  ]);
  expect(await turnsOf(gateway, 4)).toEqual(['vllm-0', 'vllm-1', 'vllm-0', 'vllm-1']);
});

test('a pod whose address is published before it is ready gets its condition too', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0, { ...GATED, isPublished: true })] });
  await using gateway = await start(api);
  await api.untilPatches(1);
  expect(await namesOf(gateway)).toEqual(['vllm-0']);
});

test('a pod that begins to terminate while it answers is not confirmed any more', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  const asked = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  pods[0]?.answerProbes(async (exchange) => {
    asked.resolve();
    await gate.promise;
    await answerJson({ data: [{ id: 'm' }] })(exchange);
  });
  api.put({ name: 's', ports, pods: [pod(0, GATED)] });
  await using gateway = await start(api);
  await api.untilWatched();
  await asked.promise;
  api.put({ name: 's', ports, pods: [pod(0, { ...GATED, terminating: true }), pod(1)] });
  await untilNames(gateway, ['vllm-1']);
  gate.resolve();
  // The one behind it is confirmed.
  api.put({ name: 's', ports, pods: [pod(1, { uid: 'next', ...GATED })] });
  await api.untilPatches(1);
  expect(api.patches.map(({ body }) => body.metadata.uid)).toEqual(['next']);
});

test('an engine that lists its model while it loads is confirmed when its health path says so', async () => {
  const { pods, pod, ports } = await startPods(1);
  const loading: Script = async (exchange) => {
    const isHealth = exchange.request.url === '/health';
    const body = isHealth ? { error: { message: 'Loading model' } } : { data: [{ id: 'm' }] };
    await answerJson(body, { status: isHealth ? 503 : 200 })(exchange);
  };
  pods[0]?.answerProbes(loading);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0, GATED)] });
  await using gateway = await start(api);
  expect(await gateway.untilLogged('pod not confirmed yet')).toContain('loading its model');
  expect(api.patches).toEqual([]);
  pods[0]?.list({ models: ['m'] });
  await untilNames(gateway, ['vllm-0']);
});

test('a pod is asked with the key, the TLS and the port of its entry', async () => {
  await using authority = await createAuthority();
  const tls = await authority.issue('pod', 'DNS:vllm.llm.svc');
  const keys: (readonly string[])[] = [];
  await using replica = await startFakeReplica({ tls });
  replica.answerProbes(async (exchange) => {
    keys.push(exchange.request.header('authorization'));
    await answerJson({ data: [{ id: 'm' }] })(exchange);
  });
  await using api = await startFakeApiServer();
  const port = Number(new URL(replica.url).port);
  const ports = [
    { name: 'metrics', port: 1, protocol: 'TCP' },
    { name: 'https', port, protocol: 'TCP' },
  ];
  api.put({ name: 's', ports, pods: [{ name: 'vllm-0', address: '127.0.0.1', ...GATED }] });
  const source = { readiness_gate: 'example.com/serves', scheme: 'https', port_name: 'https' };
  const entry = { api_key: 'secret-key', tls: { ca: authority.ca.certPath } };
  const services = [toService(api, source, entry)];
  await using gateway = await startGateway({ replicas: [], services, config: NO_POLL });
  const [patch] = await api.untilPatches(1);
  expect(patch?.body.status.conditions[0]?.type).toBe('example.com/serves');
  expect(keys.slice(0, 2)).toEqual([['Bearer secret-key'], ['Bearer secret-key']]);
  expect(gateway.logLines.join('')).not.toContain('secret-key');
});

test('a pod that was replaced under its name is left to its successor, without a warning', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0, { uid: 'old', ...GATED })] });
  // The API server knows more than the slices.
  api.pods.put([pod(0, { uid: 'new', ...GATED })]);
  await using gateway = await start(api);
  await api.untilWatched();
  await api.untilPatches(1);
  expect(api.pods.conditionsOf(pod(0, { uid: 'new' }))).toEqual([]);
  api.pods.delete('vllm-0');
  await api.untilPatches(2);
  answerOnce(api, status(409));
  await api.untilPatches(3);
  expect(await namesOf(gateway)).toEqual([]);
  expect(await gateOf(gateway)).toMatchObject({ state: 'ok', confirmed: 0, waiting: 1 });

  api.put({ name: 's', ports, pods: [pod(0, { uid: 'new', ...GATED })] });
  await untilNames(gateway, ['vllm-0']);
  expect(gateway.logLines.join('')).not.toMatch(/"level":(40|50)/);
});

test('without the right, one line says which rule is missing, and the sources show it until it is there', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.answer('patch', status(403));
  api.put({ name: 's', ports, pods: [pod(0, GATED)] });
  await using gateway = await start(api);
  await api.untilWatched();
  // The answers to two of them are known.
  await api.untilPatches(3);
  const line = await gateway.untilLogged('pods not confirmed');
  expect(line).toContain('"error_code":"refused","status":403');
  expect(line).toContain('resources [pods/status], verbs [patch]');
  expect(gateway.logLines.filter((each) => each.includes('pods not confirmed'))).toHaveLength(1);
  expect(await gateOf(gateway)).toMatchObject({
    state: 'failing',
    error_code: 'refused',
    confirmed: 0,
    waiting: 1,
    waiting_pods: [{ pod: 'vllm-0', problem: 'its condition is not written (refused)' }],
  });
  const metrics = await (await gateway.admin('/metrics')).text();
  expect(sumBy(parseSamples(metrics), 'gateway_readiness_gate_up', 'gateway_discovery_source')).toEqual({
    vllm: 0,
  });
  api.answer('patch', null);
  await untilNames(gateway, ['vllm-0']);
  await gateway.untilLogged('pods confirmed again');
  expect(await gateOf(gateway)).toMatchObject({ state: 'ok', error_code: null, confirmed: 1 });
});

test('when the API server fails, the pod is asked and confirmed again', async () => {
  const { pods, pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  answerOnce(api, status(500));
  api.put({ name: 's', ports, pods: [pod(0, GATED)] });
  await using gateway = await start(api);
  expect(await gateway.untilLogged('pods not confirmed')).toContain('"error_code":"bad_status"');
  await untilNames(gateway, ['vllm-0']);
  await gateway.untilLogged('pods confirmed again');
  expect(api.patches).toHaveLength(2);
  // The list of models and the health path, each time.
  expect(pods[0]?.probes.length).toBeGreaterThanOrEqual(4);
});

test('a pod whose name is drained is confirmed, and still gets no request', async () => {
  const { pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0), pod(1)] });
  await using gateway = await start(api);
  await api.untilWatched();
  await gateway.admin('/admin/replicas/vllm-1/drain', { method: 'POST' });
  api.put({ name: 's', ports, pods: [pod(0), pod(1, { uid: 'next', ...GATED })] });
  await api.untilPatches(1);
  await untilNames(gateway, ['vllm-0', 'vllm-1']);
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-0']);
});

test('pods that may not be written to do not keep the others from being confirmed', async () => {
  const { pods, port } = await startManyPods(20);
  await using api = await startFakeApiServer();
  for (const { name } of pods.slice(0, 17)) api.pods.forbidden.add(name);
  api.put({ name: 's', ports: [port], pods });
  await using gateway = await start(api);
  await untilNames(gateway, ['vllm-117', 'vllm-118', 'vllm-119']);
  expect(await gateOf(gateway)).toMatchObject({ confirmed: 3, waiting: 17 });
});

test('a pod without the gate gets the condition once, and a warning says that it was not held back', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0, { ready: false, gates: ['example.com/other'] })] });
  await using gateway = await start(api);
  expect(await gateway.untilLogged('pod not held back')).toContain(`"condition":"${ANSWERS}"`);
  expect(await untilGate(gateway, ({ waiting }) => waiting === 0)).toMatchObject({ confirmed: 1 });
  expect(await namesOf(gateway)).toEqual([]);
  expect(api.patches).toHaveLength(1);
});

test('two gateways confirm the same pods, and neither minds the other', async () => {
  const { pods, pod, ports } = await startPods(2);
  for (const replica of pods) replica.answerProbes(refuse);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0, GATED), pod(1, GATED)] });
  await using one = await start(api);
  await using other = await start(api);
  for (const gateway of [one, other]) await gateway.untilLogged('pod not confirmed yet');
  for (const replica of pods) replica.list({ models: ['m'] });
  for (const gateway of [one, other]) await untilNames(gateway, ['vllm-0', 'vllm-1']);
  expect(new Set(api.patches.map((patch) => patch.pod))).toEqual(new Set(['vllm-0', 'vllm-1']));
  expect([...one.logLines, ...other.logLines].join('')).not.toMatch(/"level":(40|50)/);
});

test('a reload opens the gate, and another one closes it, with the replicas and their watch as they were', async () => {
  const { pods, pod, ports } = await startPods(3);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0), pod(1, GATED)] });
  await using gateway = await startGateway({ replicas: [], services: [toService(api)], config: NO_POLL });
  await api.untilWatched();
  expect(await gateOf(gateway)).toBeNull();

  gateway.writeConfig({ services: [gated(api)] });
  expect(await (await gateway.reload()).json()).toMatchObject({ replicas: { removed: [] } });
  await untilNames(gateway, ['vllm-0', 'vllm-1']);

  pods[2]?.answerProbes(refuse);
  api.put({ name: 's', ports, pods: [pod(0), pod(1, GATED), pod(2, GATED)] });
  await untilGate(gateway, ({ waiting_pods: [first] }) => first?.problem === 'connection reset');
  gateway.writeConfig({ services: [toService(api)] });
  expect((await gateway.reload()).status).toBe(200);
  expect(await gateOf(gateway)).toBeNull();
  pods[2]?.list({ models: ['m'] });
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-1']);
  expect(api.patches.map((patch) => patch.pod)).toEqual(['vllm-1']);
  expect(api.calls.filter(({ isWatch }) => !isWatch)).toHaveLength(1);
});

test('a stop in the middle ends the question and the write, and leaves nothing behind', async () => {
  const { pods, pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  const closed = Promise.withResolvers<void>();
  api.answer('patch', (response) => void response.on('close', closed.resolve));
  const asked = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  pods[1]?.answerProbes(async ({ request }) => {
    asked.resolve();
    await request.untilAborted();
    aborted.resolve();
  });
  api.put({ name: 's', ports, pods: [pod(0, GATED), pod(1, GATED)] });
  await using gateway = await start(api);
  await Promise.all([api.untilPatches(1), asked.promise]);
  await gateway.close();
  await Promise.all([closed.promise, aborted.promise]);
  expect(gateway.logLines.join('')).not.toMatch(/"level":(40|50)|pod confirmed|not confirmed/);
});
