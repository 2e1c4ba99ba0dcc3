import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  answerJson,
  DONE,
  event,
  type FakeReplica,
  hang,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import {
  ADMIN_TOKEN,
  type ConfiguredReplica,
  type StartedGateway,
  startGateway,
} from '#testkit/start-gateway.ts';
import { invoke } from '../../cli/invoke.ts';

const POST = { method: 'POST' };
const LOADING = answerJson(
  { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
  { status: 503 },
);

async function drainUnlessLast(gateway: StartedGateway, name: string) {
  const response = await gateway.admin(`/admin/replicas/${name}/drain?unless_last=true`, POST);
  const answer = (await response.json()) as { error?: { code: string; message: string }; warning?: string };
  const { code, message } = answer.error ?? {};
  return { status: response.status, code, message, warning: answer.warning };
}

/** A server that lists its model and has no other path. */
const WITHOUT_HEALTH: Script = (exchange) =>
  (exchange.request.url === '/v1/models'
    ? answerJson({ data: [{ id: 'm', owned_by: 'x' }] })
    : answerJson({}, { status: 404 }))(exchange);

const REFUSED = { status: 409, code: 'last_replica' };
const down = (name: string, beside: FakeReplica): ConfiguredReplica => ({
  name,
  url: `${refusedUrlBeside(beside)}/${name}`,
  models: ['m'],
});

describe('?unless_last=true', () => {
  test('refuses to drain the last replica that answers, and drains nothing', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a, down('b', a), down('c', a)] });
    expect(await drainUnlessLast(gateway, 'a')).toEqual({
      ...REFUSED,
      message: expect.stringMatching(
        /^Nothing was drained: no other replica answers for m: b is unreachable since 20\S+Z \(connection refused\), c is unreachable since \S+Z \(connection refused\)\.$/,
      ),
    });
    expect(await gateway.replicas()).toMatchObject([
      { drained: false },
      { reachability: 'unreachable' },
      { reachability: 'unreachable' },
    ]);
    expect(gateway.logLines.join()).not.toContain('"msg":"drain"');
  });

  test('takes a replica that sends responses for one that answers, although it is too busy for a probe', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    let isOver = false;
    const stream: Script = async ({ request, head, write, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      while (!isOver) {
        await write(event({}));
        await setTimeout(50);
      }
      end(DONE);
    };
    for (const replica of [a, b]) replica.answer(stream);
    await using gateway = await startGateway({ replicas });
    const streams = await Promise.all([1, 2].map(() => gateway.chat({ stream: true })));
    const isSeen = async () => (await gateway.replicas()).every((each) => each.silent_streams.running === 1);
    await expect.poll(isSeen).toBe(true);
    b.answerProbes(hang);

    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({ status: 200 });
    expect(await gateway.replicas()).toMatchObject([{ drained: true }, { reachability: 'reachable' }]);
    isOver = true;
    await Promise.all(streams.map((each) => each.text()));
  });

  test('goes by model: one that nobody else serves is a reason by itself', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: a.url, models: ['m', 'only-a'] }, b],
    });
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({
      ...REFUSED,
      message: 'Nothing was drained: no other replica answers for only-a.',
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
    for (const { answerProbes } of replicas) answerProbes(WITHOUT_HEALTH);
    await using gateway = await startGateway({ replicas });
    await gateway.admin('/admin/replicas/c/drain', POST);
    expect(await drainUnlessLast(gateway, 'a')).toMatchObject({ status: 200 });
    const healthProbesOf = ({ probes }: FakeReplica) => probes.filter(({ url }) => url === '/health').length;
    expect([b, c].map(healthProbesOf)).toEqual([1, 0]);
  });

  test('is the earlier call, if an undrain is called while the others are asked', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [, b] = replicas;
    const gate = createGate();
    await using gateway = await startGateway({ replicas });
    // The probe of the start would be taken for the drain's.
    await gateway.untilReachability('b', 'reachable');
    b.answerProbes(gate.script);
    const before = b.probes.length;
    const drain = drainUnlessLast(gateway, 'a');
    await b.untilProbes(before + 1);
    await gateway.admin('/admin/replicas/a/undrain', POST);
    gate.open();

    expect(await drain).toMatchObject({
      status: 200,
      warning: 'A later undrain, perhaps on another gateway, has replaced it.',
    });
    expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: false }]);
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
  test.each([1, 2])(
    'is known without a request, and what requests have shown last, with %i workers',
    async (workers) => {
      await using a = await startFakeReplica({ name: 'a' });
      await using gateway = await startGateway({
        replicas: [a, down('b', a)],
        config: { gateway: { workers } },
      });
      await gateway.untilReachability('a', 'reachable');
      await gateway.untilReachability('b', 'unreachable');
      const port = Number(new URL(a.url).port);
      await using _b = await startFakeReplica({ address: '127.0.0.9', port });
      for (let request = 0; request < 2; request++) expect((await gateway.chat()).status).toBe(200);
      await gateway.untilReachability('b', 'reachable');
      await a.close();
      for (let request = 0; request < 2; request++) expect((await gateway.chat()).status).toBe(200);
      const gone = await gateway.untilReachability('a', 'unreachable');
      expect(gone).toMatchObject({ reachability_reason: 'connection_refused', models: ['m'] });
    },
    60_000,
  );

  test('is found out when somebody asks for one replica', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a] });
    const show = async () =>
      ((await (await gateway.admin('/admin/replicas/a')).json()) as { replica: object }).replica;
    await gateway.untilReachability('a', 'reachable');
    a.answerProbes(LOADING);
    expect(await show()).toMatchObject({
      name: 'a',
      reachability: 'loading',
      reachability_reason: 'loading_model',
      reachability_since: expect.stringMatching(/Z$/),
    });
    a.list({ models: ['m'] });
    expect(await show()).toMatchObject({ reachability: 'reachable' });
    await gateway.admin('/admin/replicas/a/drain', POST);
    const before = a.probes.length;
    expect(await show()).toMatchObject({ drained: true, reachability: 'unknown', reachability_since: null });
    expect(a.probes).toHaveLength(before);
  });

  test('of the others decides whether a drain warns that nobody is left who answers', async () => {
    await using a = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [a, down('b', a)] });
    await gateway.untilReachability('b', 'unreachable');
    const { warning } = (await (await gateway.admin('/admin/replicas/a/drain', POST)).json()) as {
      warning?: string;
    };
    expect(warning).toMatch(
      /^No replica that answers is left for m: b is unreachable since \S+Z \(connection refused\)\.$/,
    );
  });
});

describe('gateway drain', () => {
  const drain = (gateway: StartedGateway, ...args: readonly string[]) =>
    invoke(['drain', ...args, '--admin', gateway.adminUrl], { SVC_ADMIN_TOKEN: ADMIN_TOKEN });

  test('refuses the last replica that answers, whose twins never did, until it is forced', async () => {
    await using a = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: a.url, models: 'auto', engine: 'auto' },
        down('b', a),
        { name: 'c', url: refusedUrlBeside(a), models: 'auto', engine: 'auto' },
      ],
    });
    expect(await drain(gateway, 'a')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^gateway: the admin API refused: Nothing was drained: no other replica answers for m: b is unreachable since \S+ \(connection refused\)\. \(last_replica\)\ngateway: to drain it anyway: --force\n$/,
      ),
    });
    expect((await gateway.replicas())[0]).toMatchObject({ drained: false });
    // Nobody misses what never said which models it serves.
    expect(await drain(gateway, 'c')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await drain(gateway, 'a', '--force')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^gateway: warning: No replica that answers is left for m: /),
    });
  });

  test('asks no further if another replica answers', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    expect(await drain(gateway, 'a')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await drain(gateway, 'b')).toMatchObject({ exitCode: 1 });
    expect((await gateway.replicas()).map(({ drained }) => drained)).toEqual([true, false]);
  });
});
