import { describe, expect, test } from 'vitest';
import {
  answerJson,
  type FakeReplica,
  refusedUrlBeside,
  startFakeReplica,
  startFakeReplicas,
} from '../support/fake-replica.ts';
import { type ConfiguredReplica, type StartedGateway, startGateway } from '../support/start-gateway.ts';

const POST = { method: 'POST' };
const LOADING = answerJson(
  { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
  { status: 503 },
);

async function drainUnlessLast(gateway: StartedGateway, name: string) {
  const response = await gateway.admin(`/admin/replicas/${name}/drain?unless_last=true`, POST);
  const { error } = (await response.json()) as { error?: { code: string; message: string } };
  return { status: response.status, code: error?.code, message: error?.message };
}

const REFUSED = { status: 409, code: 'last_replica' };
const down = (name: string, beside: FakeReplica): ConfiguredReplica => ({
  name,
  url: refusedUrlBeside(beside),
  models: ['m'],
});

describe('?unless_last=true', () => {
  test('refuses to drain the last replica that answers, and drains nothing', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a, down('b', a), down('c', a)] });
    expect(await drainUnlessLast(gateway, 'a')).toEqual({
      ...REFUSED,
      message: 'Nothing was drained: no other replica answers for m.',
    });
    expect(await gateway.replicas()).toMatchObject([
      { drained: false, reachability: 'unknown' },
      { reachability: 'unreachable' },
      { reachability: 'unreachable' },
    ]);
    expect(gateway.logLines.join()).not.toContain('"msg":"drain"');
  });

  test('goes by model: one that nobody else serves is a reason by itself', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: a.url, models: ['m', 'only-a'] }, b],
    });
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({
      ...REFUSED,
      message: expect.stringContaining('for only-a.'),
    });
    expect(await drainUnlessLast(gateway, 'b')).toMatchObject({ status: 200 });
  });

  test.for([
    ['loads its model', LOADING],
    ['says that its engine has failed', answerJson({}, { status: 500 })],
    ['hangs up', ({ reset }: { reset: () => void }) => reset()],
  ] as const)('does not count one that %s', async ([, script]) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    b.answerProbes(script);
    await using gateway = await startGateway({ replicas: [a, b] });
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject(REFUSED);
  });

  test('counts one that has no such path, and does not ask those that are drained', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const [, b, c] = replicas;
    await using gateway = await startGateway({ replicas });
    await gateway.admin('/admin/replicas/c/drain', POST);
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({ status: 200 });
    expect([b.probes.map(({ url }) => url), c.probes]).toEqual([['/health'], []]);
  });

  test('of two calls at the same time for the last two lets one drain', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    const answers = await Promise.all(['a', 'b'].map((name) => drainUnlessLast(gateway, name)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect((await gateway.replicas()).filter(({ drained }) => drained)).toHaveLength(1);
  });

  test('leaves one drained that is so already', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    await gateway.admin('/admin/replicas/a/drain', POST);
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({ status: 200 });
  });
});

describe('reachability', () => {
  const reachabilityOf = async (gateway: StartedGateway) =>
    (await gateway.replicas()).map(({ reachability }) => reachability);

  test.each([1, 2])(
    'is what requests have shown last, with %i workers',
    async (workers) => {
      await using a = await startFakeReplica({ name: 'a' });
      await using gateway = await startGateway({
        replicas: [a, down('b', a)],
        config: { gateway: { workers } },
      });
      expect(await reachabilityOf(gateway)).toEqual(['unknown', 'unknown']);
      for (let request = 0; request < 2; request++) expect((await gateway.chat()).status).toBe(200);
      expect(await reachabilityOf(gateway)).toEqual(['reachable', 'unreachable']);
      const drained = await gateway.admin('/admin/replicas/b/drain', POST);
      expect(await drained.json()).not.toHaveProperty('warning');
      expect(await reachabilityOf(gateway)).toEqual(['reachable', 'unknown']);
    },
    60_000,
  );

  test('is found out when somebody asks for one replica', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    const show = async () =>
      ((await (await gateway.admin('/admin/replicas/a')).json()) as { replica: object }).replica;
    a.answerProbes(LOADING);
    expect(await show()).toMatchObject({ name: 'a', reachability: 'loading' });
    a.list(null);
    expect(await show()).toMatchObject({ reachability: 'reachable' });
    await gateway.admin('/admin/replicas/a/drain', POST);
    expect(await show()).toMatchObject({ drained: true, reachability: 'unknown' });
    expect(a.probes).toHaveLength(2);
  });

  test('of the others decides whether a drain warns that nobody is left who answers', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a, down('b', a)] });
    const warningOf = async () =>
      ((await (await gateway.admin('/admin/replicas/a/drain', POST)).json()) as { warning?: string }).warning;
    expect(await warningOf()).toBeUndefined();
    await gateway.admin('/admin/replicas/b');
    expect(await warningOf()).toMatch(/^No replica that answers is left for m: /);
  });
});
