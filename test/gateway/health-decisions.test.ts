import { afterEach, beforeEach, expect, test } from 'vitest';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { hang, refusedUrlBeside, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

let collector: FakeCollector;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(() => collector[Symbol.asyncDispose]());

/** The spans, the log lines and the counts of decisions on `a`, each as `verdict by judge`, in any order. */
async function decisionsIn(gateway: StartedGateway) {
  const spans = collector.spans
    .filter(({ name }) => name.startsWith('replica_'))
    .map(({ attributes: a }) => `${a['gateway.verdict']} by ${a['gateway.judge']}`);
  const lines = gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => /^replica (failing|ok|still failing):/.test(msg))
    .map(({ msg, judge }) => `${msg.startsWith('replica failing') ? 'failing' : 'ok'} by ${judge}`);
  const metrics = await (await gateway.admin('/metrics')).text();
  const counted = [...metrics.matchAll(/^gateway_replica_health_decisions_total\{(.*)\} (\d+)/gm)].flatMap(
    ([, labels = '', count]) => {
      const of = (name: string) => new RegExp(`${name}="(\\w+)"`).exec(labels)?.[1];
      return Array<string>(Number(count)).fill(`${of('gateway_verdict')} by ${of('gateway_judge')}`);
    },
  );
  return { spans: spans.toSorted(), lines: lines.toSorted(), counted: counted.toSorted() };
}

/** Ends when there are so many spans of decisions. */
const untilDecided = (count: number) =>
  collector.waitFor(({ spans }) => spans.filter(({ name }) => name.startsWith('replica_')).length >= count);

const same = (...decisions: readonly string[]) => {
  const sorted = decisions.toSorted();
  return { spans: sorted, lines: sorted, counted: sorted };
};

const isFailingBy = async (gateway: StartedGateway, judge: string) => {
  const metrics = await (await gateway.admin('/metrics')).text();
  const line = metrics
    .split('\n')
    .find(
      (each) =>
        /^gateway_replica_failing_by\{/.test(each) && each.includes(`"${judge}"`) && each.includes('"a"'),
    );
  return line?.endsWith(' 1');
};

test.each([1, 2])(
  'refused connections: a line, a count, a sample and a span each way, with %i workers',
  async (workers) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(a) }, b],
      collector,
      config: {
        health: { active: false, frozen_after: 'off', failures: 2, cool_down: '50ms' },
        gateway: { workers },
      },
    });
    const ask = async () =>
      void (await (await gateway.chat({}, { headers: { Connection: 'close' } })).arrayBuffer());
    while ((await gateway.replicas())[0]?.health !== 'failing') await ask();
    expect((await gateway.replicas())[0]?.health_reasons).toEqual(['connections']);
    await untilDecided(1);
    expect(await decisionsIn(gateway)).toEqual(same('failing by connections'));
    expect(await isFailingBy(gateway, 'connections')).toBe(true);

    await using _returned = await startFakeReplica({
      name: 'a',
      address: '127.0.0.9',
      port: Number(new URL(a.url).port),
    });
    while ((await gateway.replicas())[0]?.health !== 'ok') await ask();
    await untilDecided(2);

    expect(await decisionsIn(gateway)).toEqual(same('failing by connections', 'ok by connections'));
    expect(await isFailingBy(gateway, 'connections')).toBe(false);
    expect((await gateway.replicas())[0]?.health_reasons).toEqual([]);
    const [, ok] = collector.spans.filter(({ name }) => name.startsWith('replica_'));
    expect(ok).toMatchObject({ name: 'replica_ok', attributes: { 'gateway.replica': 'a' } });
  },
);

test('failed probes: a line, a count, a sample and a span each way', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  const [a] = replicas;
  a.list(null);
  await using gateway = await startGateway({
    replicas,
    collector,
    config: {
      health: {
        passive: false,
        frozen_after: 'off',
        failures: 2,
        successes: 2,
        interval: '10ms',
        timeout: '30s',
      },
    },
  });
  await untilDecided(1);
  expect(await isFailingBy(gateway, 'probes')).toBe(true);
  a.list({ models: ['m'] });
  await untilDecided(2);

  expect(await decisionsIn(gateway)).toEqual(same('failing by probes', 'ok by probes'));
});

test('silence, on any of two workers and switched on by a reload: a line, a count and a span each way', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  const [a] = replicas;
  await using gateway = await startGateway({ replicas, collector, config: { gateway: { workers: 2 } } });
  gateway.writeConfig({
    config: {
      gateway: { workers: 2 },
      health: { passive: false, active: false, frozen_after: '200ms', cool_down: '50ms' },
    },
  });
  expect((await gateway.reload()).status).toBe(200);
  a.answer(hang);
  // Requests that `a` gets are given up; those of `b` show that others are served.
  const ask = async () => {
    const signal = AbortSignal.timeout(300);
    const answer = gateway.chat({}, { signal, headers: { Connection: 'close' } });
    await answer.then((given) => given.arrayBuffer()).catch(() => undefined);
  };
  while ((await gateway.replicas())[0]?.health !== 'failing') await Promise.all([ask(), ask(), ask(), ask()]);
  expect((await gateway.replicas())[0]?.health_reasons).toEqual(['frozen']);
  a.answer(({ head, end }) => void head(200, ['Content-Length', '2']).then(() => end('{}')));
  while ((await gateway.replicas())[0]?.health !== 'ok') await ask();
  await untilDecided(2);

  expect(await decisionsIn(gateway)).toEqual(same('failing by frozen', 'ok by frozen'));

  gateway.writeConfig({ config: { gateway: { workers: 2 } } });
  expect((await gateway.reload()).status).toBe(200);
  expect((await gateway.replicas()).map(({ health }) => health)).toEqual([null, null]);
});
