import { describe, expect, test } from 'vitest';
import { refusedUrlBeside, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { stateAfterKill } from '#testkit/processes/state-after-kill.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';

const errorOf = async (response: Response) => ((await response.json()) as { error: unknown }).error;

describe('turns', () => {
  test('go round the replicas of the model in the order of the configuration', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    await using gateway = await startGateway({ replicas });

    expect(await turnsOf(gateway, 7)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
  });

  test('are kept for each model by itself', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const models = ['m', 'n'];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }) => ({ name, url, models })),
    });

    expect(await turnsOf(gateway, 1, { model: 'm' })).toEqual(['a']);
    expect(await turnsOf(gateway, 2, { model: 'n' })).toEqual(['a', 'b']);
    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['b', 'a']);
  });

  test('pass over replicas of other models', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    const models = [['m'], ['n'], ['m', 'n']];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }, i) => ({ name, url, models: models[i] ?? [] })),
    });

    expect(await turnsOf(gateway, 4, { model: 'm' })).toEqual(['a', 'c', 'a', 'c']);
    expect(await turnsOf(gateway, 4, { model: 'n' })).toEqual(['b', 'c', 'b', 'c']);
  });

  test('stay even when one is drained', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c');
    await using gateway = await startGateway({ replicas });
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });

    expect(await turnsOf(gateway, 4)).toEqual(['a', 'c', 'a', 'c']);
    await gateway.admin('/admin/replicas/b/undrain', { method: 'POST' });
    expect(await turnsOf(gateway, 6)).toEqual(expect.arrayContaining(['a', 'b', 'c']));
  });

  test('of 100 concurrent requests on 4 replicas, one refusing, differ by at most 1', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    const [refusing] = replicas;
    const configured = replicas.map((replica) =>
      replica === refusing ? { name: replica.name, url: refusedUrlBeside(replica) } : replica,
    );
    await using gateway = await startGateway({ replicas: configured });

    const responses = await Promise.all(Array.from({ length: 100 }, () => gateway.chat()));

    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200));
    const counts = replicas.slice(1).map(({ requests }) => requests.length);
    expect(counts.reduce((sum, count) => sum + count)).toBe(100);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(replicas[0]?.requests).toEqual([]);
  });

  test('of 100 requests one after the other, one replica refusing, differ by at most 1', async () => {
    await using replicas = await startFakeReplicas('a', 'b', 'c', 'd');
    const configured = replicas.map((replica) =>
      replica.name === 'b' ? { name: 'b', url: refusedUrlBeside(replica) } : replica,
    );
    await using gateway = await startGateway({ replicas: configured });

    await turnsOf(gateway, 100);

    const counts = replicas.filter(({ name }) => name !== 'b').map(({ requests }) => requests.length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });
});

describe('without a replica to send to', () => {
  test('all drained is a 503 with Retry-After', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    for (const name of ['a', 'b']) await gateway.admin(`/admin/replicas/${name}/drain`, { method: 'POST' });

    const response = await gateway.chat();

    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await errorOf(response)).toMatchObject({
      code: 'all_replicas_drained',
      type: 'server_error',
      param: null,
    });
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 503, error_type: 'all_replicas_drained', model: 'm' });
    expect(record.replica).toBeUndefined();
    expect(record.attempts).toBeUndefined();
  });

  test('none reachable is a 502, and the record names the one tried last', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({
      replicas: replicas.map((replica) => ({ name: replica.name, url: refusedUrlBeside(replica) })),
    });

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await errorOf(response)).toMatchObject({
      code: 'no_replica_reachable',
      type: 'server_error',
      param: null,
    });
    expect(await gateway.nextRecord()).toMatchObject({
      status: 502,
      error_type: 'no_replica_reachable',
      attempts: 2,
      replica: 'b',
    });
  });

  test('some drained and the others refusing is a 502: a drain is not why it failed', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({
      replicas: replicas.map((replica) => ({ name: replica.name, url: refusedUrlBeside(replica) })),
    });
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });

    const response = await gateway.chat();

    expect(response.status).toBe(502);
    expect(await gateway.nextRecord()).toMatchObject({ attempts: 1, replica: 'b' });
  });

  test('a model that nobody serves is a 404 that names the parameter, and tries nobody', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.chat({ model: 'nobody-has-it' });

    expect(response.status).toBe(404);
    expect(await errorOf(response)).toEqual({
      message: 'No replica serves the model `nobody-has-it`.',
      type: 'invalid_request_error',
      param: 'model',
      code: 'model_not_found',
    });
    expect(await gateway.nextRecord()).toMatchObject({ status: 404, model: 'nobody-has-it' });
    expect(replica.requests).toEqual([]);
  });

  test('a model whose name is that of an object member is a 404 as well', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    for (const model of ['__proto__', 'constructor', 'toString', '*', '']) {
      expect((await gateway.chat({ model })).status, model).toBe(404);
    }
  });
});

describe('which replicas serve a model', () => {
  test('["*"] serves any name, beside those that name it', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    const models = [['m'], ['*']];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }, i) => ({ name, url, models: models[i] ?? [] })),
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['a', 'b']);
    expect(await turnsOf(gateway, 2, { model: 'any' })).toEqual(['b', 'b']);
  });

  test('auto is read from /v1/models at the start, with probes that are no requests', async () => {
    await using a = await startFakeReplica({ name: 'a', list: { models: ['m', 'n'] } });
    await using b = await startFakeReplica({ name: 'b', list: { models: ['n'] } });
    await using gateway = await startGateway({
      replicas: [a, b].map(({ name, url }) => ({ name, url, models: 'auto' as const, engine: 'auto' })),
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['a', 'a']);
    expect(await turnsOf(gateway, 2, { model: 'n' })).toEqual(['a', 'b']);
    expect((await gateway.chat({ model: 'x' })).status).toBe(404);
    expect(a.probes).toHaveLength(1);
    expect(a.probes[0]?.header('authorization')).toEqual([]);
  });

  test('a replica whose list is not known is a candidate only when nobody is known to serve the model', async () => {
    await using known = await startFakeReplica({ name: 'known' });
    await using unknown = await startFakeReplica({ name: 'unknown', list: null });
    await using gateway = await startGateway({
      replicas: [
        { name: 'unknown', url: unknown.url, models: 'auto' },
        { name: 'known', url: known.url, models: ['m'] },
      ],
    });

    expect(await turnsOf(gateway, 2, { model: 'm' })).toEqual(['known', 'known']);
    expect(await turnsOf(gateway, 1, { model: 'x' })).toEqual(['unknown']);
  });

  test.for([
    ['vllm', 'vllm'],
    ['sglang', 'sglang'],
    ['llamacpp', 'llamacpp'],
    ['library', 'ollama'],
    ['openai', 'openai'],
    ['somebody', 'openai'],
  ] as const)('owned_by %s makes the engine %s', async ([ownedBy, engine]) => {
    await using replica = await startFakeReplica({ list: { models: ['m'], ownedBy } });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
    });

    const view = (await (await gateway.admin('/admin/replicas')).json()) as { replicas: unknown[] };

    expect(view.replicas).toEqual([expect.objectContaining({ engine, models: ['m'] })]);
  });

  test('a drained replica is spared by the probes', async () => {
    await using replica = await startFakeReplica({ list: { models: ['m'] } });
    const configured = { name: 'a', url: replica.url, models: 'auto' as const, engine: 'auto' };
    await using first = await startGateway({ replicas: [configured] });
    await first.admin('/admin/replicas/a/drain', { method: 'POST' });
    const before = replica.probes.length;

    const stateDir = await stateAfterKill(first.stateDir);
    await using second = await startGateway({ replicas: [configured], stateDir });

    expect(replica.probes).toHaveLength(before);
    expect((await second.chat()).status).toBe(503);
  });
});
