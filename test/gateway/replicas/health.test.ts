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
import { createStreamGate } from '#testkit/gates.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

/** Connections refused twice make a replica a failing one; it is not tried again for as long as a test runs. */
const passive = { passive: true, active: false, frozen_after: 'off', failures: 2, cool_down: '1h' };
const active = {
  passive: false,
  active: true,
  frozen_after: 'off',
  failures: 2,
  successes: 2,
  interval: '10ms',
  timeout: '30s',
};

/** A gateway before `a`, which refuses connections, and `b`. */
const startBeforeRefusing = (
  [a, b]: readonly [FakeReplica, FakeReplica],
  config: StartGatewayOptions['config'] = {},
) => startGateway({ replicas: [{ name: 'a', url: refusedUrlBeside(a) }, b], config });

/** How often each of so many requests, one after the other, was tried. */
async function attemptsOf(gateway: StartedGateway, count: number): Promise<readonly (number | undefined)[]> {
  const before = gateway.records.length;
  await turnsOf(gateway, count);
  return gateway.records.slice(before).map(({ attempts }) => attempts);
}

const linesOf = (gateway: StartedGateway, message: string) =>
  gateway.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.startsWith(message));

const healthOf = async (gateway: StartedGateway) => (await gateway.replicas()).map(({ health }) => health);

describe('an empty section, health: {}', () => {
  test('has the judges of connections, probes and silence', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas, config: { health: {} } });
    const metrics = await (await gateway.admin('/metrics')).text();
    const judges = [...metrics.matchAll(/^gateway_replica_failing_by\{.*gateway_judge="(\w+)".*\} 0$/gm)];
    expect(new Set(judges.map(([, judge]) => judge))).toEqual(new Set(['connections', 'probes', 'frozen']));
    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);
  });
});

describe('without health in the configuration', () => {
  test('a replica that refuses every connection is tried in its turn, again and again', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startBeforeRefusing(replicas);

    expect(await attemptsOf(gateway, 6)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(await healthOf(gateway)).toEqual([null, null]);
    expect(linesOf(gateway, 'replica failing')).toEqual([]);
  });
});

describe('health.passive', () => {
  test('tries a replica last that refused so many connections in a row, and says so once', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startBeforeRefusing(replicas, { health: passive });

    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);
    expect(await attemptsOf(gateway, 6)).toEqual([2, 2, 1, 1, 1, 1]);

    const [a] = await gateway.replicas();
    expect(a).toMatchObject({ health: 'failing', health_since: expect.stringMatching(/Z$/) });
    expect(linesOf(gateway, 'replica failing')).toMatchObject([{ replica: 'a', judge: 'connections' }]);
  });

  test('never leaves it out: where no other is left it is tried, and is ok when it answers', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    await using gateway = await startBeforeRefusing(replicas, { health: passive });
    await attemptsOf(gateway, 2);
    expect(await healthOf(gateway)).toEqual(['failing', 'ok']);

    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
    expect((await gateway.chat()).status).toBe(502);
    const port = Number(new URL(a.url).port);
    await using returned = await startFakeReplica({ name: 'a', address: '127.0.0.9', port });
    expect((await gateway.chat()).status).toBe(200);

    expect(returned.requests).toHaveLength(1);
    expect(await healthOf(gateway)).toEqual(['ok', null]);
    expect(linesOf(gateway, 'replica ok')).toMatchObject([{ replica: 'a' }]);
  });

  test('has one request try it again after the cool-down, which takes it back if it answers', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    await using gateway = await startBeforeRefusing(replicas, {
      health: { ...passive, cool_down: '50ms' },
    });
    await attemptsOf(gateway, 2);
    const retries = async () => (await attemptsOf(gateway, 1)).filter((attempts) => attempts === 2).length;

    while ((await retries()) === 0);
    const port = Number(new URL(a.url).port);
    await using returned = await startFakeReplica({ name: 'a', address: '127.0.0.9', port });
    while (returned.requests.length === 0) await attemptsOf(gateway, 1);

    expect((await turnsOf(gateway, 4)).toSorted()).toEqual(['a', 'a', 'b', 'b']);
    expect(linesOf(gateway, 'replica failing')).toHaveLength(1);
    expect(linesOf(gateway, 'replica ok')).toHaveLength(1);
  });

  test('counts over all workers, and all of them go by it', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startBeforeRefusing(replicas, {
      health: { ...passive, failures: 4 },
      gateway: { workers: 2 },
    });

    // Each on a connection of its own: the system spreads those over the workers.
    for (let count = 0; count < 16; count++) {
      await (await gateway.chat({}, { headers: { Connection: 'close' } })).arrayBuffer();
    }

    // Those of two workers come in any order.
    const attempts = (await gateway.waitForRecords(16)).map((record) => record.attempts);
    expect(attempts.toSorted()).toEqual([...Array(12).fill(1), 2, 2, 2, 2]);
    expect(await healthOf(gateway)).toEqual(['failing', 'ok']);
  });

  test('begins anew with a replica that was drained and undrained', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startBeforeRefusing(replicas, { health: passive });
    await attemptsOf(gateway, 2);
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    expect(await healthOf(gateway)).toEqual([null, 'ok']);

    await gateway.admin('/admin/replicas/a/undrain', { method: 'POST' });

    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);
    expect((await attemptsOf(gateway, 4)).toSorted()).toEqual([1, 1, 2, 2]);
  });

  test('takes an answer with an error for an answer: what an engine says is between it and the client', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    a.answer(({ head, end }) => void head(500, ['Content-Length', '0']).then(() => end()));
    await using gateway = await startGateway({ replicas, config: { health: passive } });

    expect(await turnsOf(gateway, 6)).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);
  });
});

describe('health.active', () => {
  test('tries a replica last whose probes fail, though it takes connections, and in its turn when they do not', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    a.list(null);
    await using gateway = await startGateway({ replicas, config: { health: active } });

    await gateway.untilLogged('replica failing');
    expect(await turnsOf(gateway, 3)).toEqual(['b', 'b', 'b']);
    expect(await healthOf(gateway)).toEqual(['failing', 'ok']);
    a.list({ models: ['m'] });
    await gateway.untilLogged('replica ok');

    expect((await turnsOf(gateway, 4)).toSorted()).toEqual(['a', 'a', 'b', 'b']);
    expect(linesOf(gateway, 'replica failing')).toMatchObject([{ replica: 'a', judge: 'probes' }]);
  });

  test('asks for the path with the key, and not as a request of a client', async () => {
    await using replica = await startFakeReplica({ name: 'a', list: { models: ['m'] } });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: `${replica.url}/engine`, api_key: 'key-1' }],
      config: { health: { ...active, path: '/v1/models?limit=1' } },
    });

    await replica.untilProbes(2);

    const [probe] = replica.probes.filter(({ url }) => url.includes('?'));
    expect(probe).toMatchObject({ method: 'GET', url: '/engine/v1/models?limit=1' });
    expect(probe?.header('authorization')).toEqual(['Bearer key-1']);
    expect(replica.requests).toEqual([]);
    expect(gateway.records).toEqual([]);
  });

  test('asks a server without /health for its models, as long as no path is configured', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const [a, b, c] = replicas;
    const notFound = answerJson({}, { status: 404 });
    const without =
      (list: Script): Script =>
      (exchange) =>
        exchange.request.url.includes('/health') ? notFound(exchange) : list(exchange);
    a.answerProbes(without(answerJson({ object: 'list', data: [] })));
    b.answerProbes(without(answerJson({ error: 'a key is needed' }, { status: 401 })));
    c.answerProbes(notFound);
    await using gateway = await startGateway({ replicas, config: { health: active } });

    await gateway.untilLogged('replica failing');
    await a.untilProbes(a.probes.length + 8);
    await b.untilProbes(b.probes.length + 8);
    expect(await healthOf(gateway)).toEqual(['ok', 'ok', 'failing']);

    gateway.writeConfig({ config: { health: { ...active, path: '/health' } } });
    await gateway.reload();
    while ((await healthOf(gateway)).includes('ok')) await a.untilProbes(a.probes.length + 1);
  });

  test('spares drained replicas', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    await using gateway = await startGateway({ replicas, config: { health: active } });
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    // A probe may be under way while the drain is answered; the next turn of `a` is spared for sure.
    await b.untilProbes(b.probes.length + 2);
    const before = a.probes.length;

    await b.untilProbes(b.probes.length + 5);

    expect(a.probes).toHaveLength(before);
    expect((await healthOf(gateway))[0]).toBeNull();
  });

  test('takes a probe that is not answered in time for a failed one', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    replica.answerProbes(hang);
    await using gateway = await startGateway({
      replicas: [replica],
      config: { health: { ...active, timeout: '20ms' } },
    });

    await gateway.untilLogged('replica failing');

    expect(await healthOf(gateway)).toEqual(['failing']);
    expect((await gateway.chat()).status).toBe(200);
  });

  test('calls a replica that answered before unreachable after two probes without an answer, not after one', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { health: { ...active, failures: 1, successes: 1, timeout: '1s' } },
    });
    const read = async () => (await gateway.replicas()).map(({ reachability }) => reachability);
    while ((await read())[0] !== 'reachable') await replica.untilProbes(replica.probes.length + 1);
    const well = answerJson({ object: 'list', data: [] });
    let isFirst = true;
    replica.answerProbes(async (exchange) => {
      const script = isFirst ? hang : well;
      isFirst = false;
      await script(exchange);
    });

    await gateway.untilLogged('replica failing');
    expect(await read()).toEqual(['reachable']);
    await gateway.untilLogged('replica ok');
    replica.answerProbes(hang);
    while ((await read())[0] !== 'unreachable') await replica.untilProbes(replica.probes.length + 1);
  });

  test('counts no probe without an answer while the replica sends responses: it is only busy', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    let isOver = false;
    replica.answer(async ({ request, head, write, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'text/event-stream']);
      while (!isOver) {
        await write(event({}));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      end(DONE);
    });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { health: { ...active, failures: 1, timeout: '500ms' } },
    });
    const stream = await gateway.chat({ stream: true });
    const reading = stream.text();
    const read = async () => (await gateway.replicas()).map(({ reachability }) => reachability);
    const isSeen = async () => (await gateway.replicas()).every((each) => each.silent_streams.running === 1);
    while ((await read())[0] !== 'reachable' || !(await isSeen()))
      await replica.untilProbes(replica.probes.length + 1);
    replica.answerProbes(hang);

    // Each begins when the one before is over.
    await replica.untilProbes(replica.probes.length + 4);
    expect([await read(), await healthOf(gateway)]).toEqual([['reachable'], ['ok']]);
    isOver = true;
    await reading;
    await gateway.untilLogged('replica failing');
    while ((await read())[0] !== 'unreachable') await replica.untilProbes(replica.probes.length + 1);
  });

  test('can be switched on and off by a reload, which forgets what was known', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    a.list(null);
    await using gateway = await startGateway({ replicas });

    gateway.writeConfig({ config: { health: active } });
    expect((await gateway.reload()).status).toBe(200);
    await gateway.untilLogged('replica failing');
    expect(await turnsOf(gateway, 2)).toEqual(['b', 'b']);
    gateway.writeConfig({ config: {} });
    await gateway.reload();

    expect(await healthOf(gateway)).toEqual([null, null]);
    expect((await turnsOf(gateway, 4)).toSorted()).toEqual(['a', 'a', 'b', 'b']);
  });
});

describe('health.frozen_after', () => {
  const frozen = { passive: false, active: false, frozen_after: '200ms', cool_down: '1h' };

  test('tries a replica last whose stream is silent while a peer answers, until bytes come', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    const gate = createStreamGate([event({})], DONE);
    a.answerOnce(gate.script);
    await using gateway = await startGateway({ replicas, config: { health: frozen } });
    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);

    const stream = await gateway.chat({ stream: true });
    a.answer(hang);
    // Those that `a` gets are given up.
    const ask = async () => {
      const signal = AbortSignal.timeout(200);
      const answer = gateway.chat({}, { signal });
      await answer.then((given) => given.arrayBuffer()).catch(() => undefined);
    };
    while ((await healthOf(gateway))[0] !== 'failing') await ask();

    expect(linesOf(gateway, 'replica failing')).toMatchObject([{ replica: 'a', judge: 'frozen' }]);
    // `a` would not answer. Records of requests that were given up may still come, so they do not count.
    for (let count = 0; count < 3; count++) expect((await gateway.chat()).status).toBe(200);
    gate.open();
    await stream.text();
    await gateway.untilLogged('replica ok');
    expect(await healthOf(gateway)).toEqual(['ok', 'ok']);
  });

  test('does not take the heads of streams for signs of life: the engine behind them is frozen', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a] = replicas;
    const gate = createStreamGate([], DONE);
    a.answer(gate.script);
    await using gateway = await startGateway({ replicas, config: { health: frozen } });
    const held = await gateway.chat({ stream: true });
    // Each one that `a` gets has its head at once, so that one comes far more often than every 200 ms.
    const ask = async () => {
      const answer = await gateway.chat({ stream: true });
      await answer.body?.cancel();
    };
    while ((await healthOf(gateway))[0] !== 'failing') await ask();
    expect(linesOf(gateway, 'replica failing')).toMatchObject([{ replica: 'a', judge: 'frozen' }]);
    gate.open();
    await held.text();
  });
});
