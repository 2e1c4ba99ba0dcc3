import dns from 'node:dns';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createResolver } from '#replicas/discovery';
import { createAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { srvRecord, startDnsServer } from '#testkit/servers/dns-server.ts';
import { addresses, createFakeResolver } from '#testkit/servers/fake-resolver.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';
import { namesOf, startPods } from './pods.ts';

const NAME = 'vllm.llm.svc.test';
const QUICK = { discovery: { dns_interval: '100ms', models_interval: '1h' } };

afterEach(() => vi.restoreAllMocks());

const toService = ({ url }: Pick<FakeReplica, 'url'>) => ({
  name: 'vllm',
  dns: url.replace('127.0.0.1', NAME),
  models: ['m'],
  engine: 'openai',
});

test('a name is one replica for each of its addresses, which take turns', async () => {
  const { pods } = await startPods(2);
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.2', '127.0.0.1'));
  await using gateway = await startGateway({ replicas: [], services: [toService(pods[0])], resolver });
  expect(await gateway.replicas()).toMatchObject([
    { name: 'vllm-127.0.0.1', url: pods[0].url, host: '127.0.0.1' },
    { name: 'vllm-127.0.0.2', url: pods[1].url, host: '127.0.0.2' },
  ]);
  expect(await turnsOf(gateway, 4)).toEqual([
    'vllm-127.0.0.1',
    'vllm-127.0.0.2',
    'vllm-127.0.0.1',
    'vllm-127.0.0.2',
  ]);
});

test('an address that is gone gets no new request, and finishes those it has', async () => {
  const { pods } = await startPods(2);
  const [one, two] = pods;
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.1'));
  const services = [toService(one)];
  await using gateway = await startGateway({ replicas: [], services, resolver, config: QUICK });
  const gate = createGate();
  one.answerOnce(gate.script);
  const pending = gateway.chat();
  await one.untilRequests(1);

  resolver.point(NAME, addresses('127.0.0.2'));
  expect(await gateway.untilLogged('replicas changed')).toContain(
    '"added":["vllm-127.0.0.2"],"changed":[],"removed":["vllm-127.0.0.1"]',
  );
  expect(await turnsOf(gateway, 3)).toEqual(Array(3).fill('vllm-127.0.0.2'));
  expect(await gateway.replicas()).toMatchObject([
    { name: 'vllm-127.0.0.2', drained: false, removing: false },
    { name: 'vllm-127.0.0.1', drained: true, removing: true, inflight: 1, safe_to_stop: false },
  ]);

  gate.open();
  expect((await pending).status).toBe(200);
  await gateway.waitForRecords(4);
  expect(await namesOf(gateway)).toEqual(['vllm-127.0.0.2']);
  expect(one.requests).toHaveLength(1);
  expect(two.requests).toHaveLength(3);
});

test('a drained address stays drained when it goes and comes back', async () => {
  const { pods } = await startPods(2);
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.1', '127.0.0.2'));
  const services = [toService(pods[0])];
  await using gateway = await startGateway({ replicas: [], services, resolver, config: QUICK });
  await gateway.admin('/admin/replicas/vllm-127.0.0.2/drain', { method: 'POST' });
  resolver.point(NAME, addresses('127.0.0.1'));
  await resolver.untilHeard();
  expect(await namesOf(gateway)).toEqual(['vllm-127.0.0.1']);
  resolver.point(NAME, addresses('127.0.0.1', '127.0.0.2'));
  await resolver.untilHeard();
  expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: true }]);
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-127.0.0.1', 'vllm-127.0.0.1']);
});

const sourcesOf = async (gateway: StartedGateway) =>
  ((await (await gateway.admin('/admin/replicas')).json()) as { sources: unknown }).sources;

test.each<[string, Parameters<ReturnType<typeof createFakeResolver>['point']>[1], string]>([
  ['cannot be resolved any more', 'ESERVFAIL', 'ESERVFAIL'],
  ['fails without a code that is a word', `\u001b[2J${'x'.repeat(1_000)}`, 'unknown_error'],
  ['has no address any more', [], 'ENODATA'],
])(
  'a name that %s keeps the replicas it had, with one line in the log and a failing source',
  async (_what, nothing, code) => {
    const { pods } = await startPods(2);
    const resolver = createFakeResolver();
    resolver.point(NAME, addresses('127.0.0.1'));
    const services = [toService(pods[0])];
    await using gateway = await startGateway({ replicas: [], services, resolver, config: QUICK });
    resolver.point(NAME, nothing);
    await resolver.untilHeard();
    await resolver.untilHeard();
    expect(await turnsOf(gateway, 1)).toEqual(['vllm-127.0.0.1']);
    expect(gateway.logLines.filter((line) => line.includes('name not resolved'))).toHaveLength(1);
    const source = {
      name: 'vllm',
      kind: 'dns',
      since: expect.any(String),
      error_cause: null,
      advice: null,
      readiness_gate: null,
    };
    expect(await sourcesOf(gateway)).toEqual([{ ...source, state: 'failing', error_code: code }]);
    const metrics = await (await gateway.admin('/metrics')).text();
    expect(metrics).toMatch(/^gateway_discovery_up\{.*gateway_discovery_kind="dns".*\} 0$/m);
    resolver.point(NAME, addresses('127.0.0.1'));
    await gateway.untilLogged('name resolved again');
    expect(await sourcesOf(gateway)).toEqual([{ ...source, state: 'ok', error_code: null }]);
  },
);

test('of two replicas with one name the first of the file is there, and the other is told of once', async () => {
  const { pods } = await startPods(2);
  const [one, two] = pods;
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.2'));
  await using gateway = await startGateway({
    replicas: [{ name: 'vllm-127.0.0.2', url: one.url }],
    services: [toService(one)],
    resolver,
    config: QUICK,
  });
  await resolver.untilHeard();
  expect(await gateway.replicas()).toMatchObject([{ name: 'vllm-127.0.0.2', url: one.url }]);
  expect(JSON.parse(await gateway.untilLogged('its name is taken'))).toMatchObject({ url: two.url });
  expect(gateway.logLines.filter((line) => line.includes('its name is taken'))).toHaveLength(1);
});

test('a model is not unknown while the name of those that may serve it is not resolved', async () => {
  const { pods } = await startPods(2);
  const resolver = createFakeResolver();
  const services = [toService(pods[0])];
  await using gateway = await startGateway({ replicas: [], services, resolver, config: QUICK });
  expect(await (await gateway.chat()).json()).toMatchObject({ error: { code: 'no_replica_reachable' } });
  resolver.point(NAME, addresses('127.0.0.1'));
  await resolver.untilHeard();
  expect((await gateway.chat()).status).toBe(200);
  const { status } = await gateway.chat({ model: 'other' });
  expect(status).toBe(404);
});

test('pods are known by the names that their SRV records have', async () => {
  await using one = await startFakeReplica();
  await using two = await startFakeReplica();
  await using server = await startDnsServer(
    [one, two].map(({ url }, ordinal) =>
      srvRecord(`_http._tcp.${NAME}`, `vllm-${ordinal}.${NAME}`, Number(new URL(url).port)),
    ),
  );
  vi.spyOn(dns, 'lookup').mockImplementation(lookUpLoopback('127.0.0.1'));
  await using gateway = await startGateway({
    replicas: [],
    services: [{ name: 'vllm', dns: `http://_http._tcp.${NAME}`, models: ['m'], engine: 'openai' }],
    resolver: createResolver([server.address]),
  });
  expect(await turnsOf(gateway, 3)).toEqual(['vllm-0', 'vllm-1', 'vllm-0']);
  await gateway.admin('/admin/replicas/vllm-0/drain', { method: 'POST' });
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-1', 'vllm-1']);
});

test('the certificates of pods that are known by their addresses name the service', async () => {
  await using authority = await createAuthority();
  const { cert, key } = await authority.issue('vllm', `DNS:${NAME}`);
  const trusted = getCACertificates();
  setDefaultCACertificates([...trusted, authority.ca.cert]);
  onTestFinished(() => setDefaultCACertificates(trusted));
  await using pod = await startFakeReplica({ tls: { cert, key } });
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.1'));
  const services = [toService(pod)];
  await using gateway = await startGateway({ replicas: [], services, resolver });
  expect((await gateway.chat()).status).toBe(200);
});

test('a url whose name means another address is followed, also while its connections are never idle', async () => {
  const { pods } = await startPods(2);
  const [before, after] = pods;
  const url = `http://one.test:${new URL(before.url).port}`;
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(lookUpLoopback('127.0.0.1'));
  const config = { ...QUICK, timeouts: { upstream_keep_alive: '1h' } };
  await using gateway = await startGateway({ replicas: [{ name: 'a', url }], config });
  await turnsOf(gateway, 3);
  expect(before.requests).toHaveLength(3);
  lookup.mockImplementation(lookUpLoopback('127.0.0.2'));
  let isLeft = false;
  void before.untilOpenConnections(0).then(() => {
    isLeft = true;
  });
  while (!isLeft) await turnsOf(gateway, 1);
  const count = before.requests.length;
  await turnsOf(gateway, 3);
  expect(before.requests).toHaveLength(count);
  expect(after.requests.length).toBeGreaterThanOrEqual(3);
});

/** Finds this address for every name. */
function lookUpLoopback(address: string) {
  return ((_name: string, options: dns.LookupOptions, done: LookupCallback) => {
    if (options.all) done(null, [{ address, family: 4 }]);
    else done(null, address, 4);
  }) as typeof dns.lookup;
}

type LookupCallback = (error: null, found: string | dns.LookupAddress[], family?: number) => void;

test('a name whose replica is away can be undrained, and the replica serves when it comes', async () => {
  const { pods } = await startPods(2);
  const resolver = createFakeResolver();
  resolver.point(NAME, addresses('127.0.0.1', '127.0.0.2'));
  await using gateway = await startGateway({
    replicas: [],
    services: [toService(pods[0])],
    resolver,
    config: QUICK,
  });
  const call = (path: string) => gateway.admin(`/admin/replicas/${path}`, { method: 'POST' });
  expect((await call('vllm-127.0.0.2/drain?reason=rollout')).status).toBe(200);
  resolver.point(NAME, addresses('127.0.0.1'));
  await expect.poll(() => namesOf(gateway)).toEqual(['vllm-127.0.0.1']);

  expect((await call('vllm-127.0.0.3/undrain')).status).toBe(404);
  expect(await (await call('vllm-127.0.0.2/undrain')).json()).toMatchObject({
    replica: { name: 'vllm-127.0.0.2', drained: false, absent: true },
    was_drained: true,
    stored: true,
  });
  // Its answer may have been lost.
  expect(await (await call('vllm-127.0.0.2/undrain')).json()).toMatchObject({ was_drained: false });
  resolver.point(NAME, addresses('127.0.0.1', '127.0.0.2'));
  await expect.poll(() => gateway.replicas()).toMatchObject([{ drained: false }, { drained: false }]);
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-127.0.0.1', 'vllm-127.0.0.2']);
});
