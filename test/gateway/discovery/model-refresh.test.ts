import { expect, test } from 'vitest';
import { type FakeReplica, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

const QUICK = { discovery: { models_interval: '100ms' } };

/** Starts a gateway before replicas that are asked what they serve. */
const startBefore = (replicas: readonly FakeReplica[], config = QUICK) =>
  startGateway({
    replicas: replicas.map(({ name, url }) => ({ name, url, models: 'auto', engine: 'auto' })),
    config,
  });

/** Resolves when the gateway goes by what the replica lists now: it has asked twice since. */
async function untilHeard(replica: FakeReplica): Promise<void> {
  await replica.untilProbes(replica.probes.length + 2);
}

const modelsOf = async (gateway: StartedGateway) => (await gateway.replicas()).map(({ models }) => models);

test('a model that appears is served, and one that disappears is not', async () => {
  await using replica = await startFakeReplica({ list: { models: ['m'] } });
  await using gateway = await startBefore([replica]);
  expect((await gateway.chat({ model: 'adapter' })).status).toBe(404);
  replica.list({ models: ['adapter'] });
  await untilHeard(replica);
  expect((await gateway.chat({ model: 'adapter' })).status).toBe(200);
  expect((await gateway.chat({ model: 'm' })).status).toBe(404);
});

test('a model that appears is served, however often the configuration is reloaded', async () => {
  await using replica = await startFakeReplica({ list: { models: ['m'] } });
  await using gateway = await startBefore([replica], { discovery: { models_interval: '500ms' } });
  replica.list({ models: ['adapter'] });
  while ((await modelsOf(gateway))[0]?.[0] !== 'adapter') expect((await gateway.reload()).status).toBe(200);
});

test('a model that comes to one replica more leaves the turns of the others as they were', async () => {
  await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using b = await startFakeReplica({ name: 'b', list: { models: ['m'] } });
  await using c = await startFakeReplica({ name: 'c', list: { models: ['x'] } });
  await using gateway = await startBefore([c, a, b]);
  expect(await turnsOf(gateway, 3)).toEqual(['a', 'b', 'a']);
  c.list({ models: ['x', 'm'] });
  await untilHeard(c);
  expect(await turnsOf(gateway, 3)).toEqual(['b', 'c', 'a']);
});

test('what a replica served is kept while it does not tell', async () => {
  await using replica = await startFakeReplica({ list: { models: ['m'], ownedBy: 'vllm' } });
  await using gateway = await startBefore([replica]);
  replica.list(null);
  await untilHeard(replica);
  expect((await gateway.chat()).status).toBe(200);
  expect(await gateway.replicas()).toMatchObject([{ models: ['m'], engine: 'vllm' }]);
});

test('a drained replica is not asked, and asked before it takes requests again', async () => {
  await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using b = await startFakeReplica({ name: 'b', list: { models: ['m'] } });
  await using gateway = await startBefore([a, b]);
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  await untilHeard(b);
  const before = a.probes.length;
  await untilHeard(b);
  await untilHeard(b);
  expect(a.probes).toHaveLength(before);
  a.list({ models: ['m', 'next'] });
  await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
  expect(await modelsOf(gateway)).toEqual([['m', 'next'], ['m']]);
  expect((await gateway.chat({ model: 'next' })).status).toBe(200);
});

test('a drain that is called while an undrain still asks for the models is the later one', async () => {
  await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using b = await startFakeReplica({ name: 'b', list: { models: ['m'] } });
  await using gateway = await startBefore([a, b]);
  await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  // A probe of before the drain may still be under way: it would be taken for the undrain's.
  await untilHeard(b);
  const gate = createGate();
  a.answerProbes(gate.script);
  const before = a.probes.length;
  const undrain = gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });
  await a.untilProbes(before + 1);

  const drain = await gateway.admin('/admin/replicas/a/drain?reason=no', { method: 'POST' });
  expect(await drain.json()).toMatchObject({ replica: { drained: true, safe_to_stop: true } });
  gate.open();

  expect(await (await undrain).json()).toMatchObject({
    replica: { drained: true, reason: 'no', safe_to_stop: true },
    overtaken: true,
    warning: 'A later drain, perhaps on another gateway, has replaced it.',
  });
  expect(await gateway.replicas()).toMatchObject([{ drained: true }, { drained: false }]);
});

test('a replica whose models and engine are configured is asked whether it answers, and serves what is configured', async () => {
  await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using b = await startFakeReplica({ name: 'b', list: { models: ['other'], ownedBy: 'sglang' } });
  const configured = { name: 'b', url: b.url, models: ['m'], engine: 'vllm' };
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: a.url, models: 'auto' }, configured],
    config: QUICK,
  });
  await untilHeard(a);
  await untilHeard(b);
  expect((await gateway.replicas())[1]).toMatchObject({
    reachability: 'reachable',
    models: ['m'],
    engine: 'vllm',
  });
  expect([...a.probes, ...b.probes].every(({ url }) => url === '/v1/models')).toBe(true);
});

test('a replica that is too busy for one probe is asked once more before it counts as unreachable', async () => {
  await using replica = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
  await using gateway = await startBefore([replica]);
  await gateway.untilReachability('a', 'reachable');
  const { reachability_since: since } = (await gateway.replicas())[0] ?? {};
  replica.answerProbes((exchange) => {
    replica.list({ models: ['m'] });
    return hang(exchange);
  });
  await replica.untilProbes(replica.probes.length + 3);
  expect(await gateway.replicas()).toMatchObject([{ reachability: 'reachable', reachability_since: since }]);
  expect(gateway.logLines.join()).not.toContain('replica a: ');
});
