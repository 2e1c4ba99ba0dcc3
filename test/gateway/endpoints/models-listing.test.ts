import { createHash } from 'node:crypto';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { answerJson, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const UNION = { models_listing: 'union' };
const toModel = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'gateway' });

describe('with models_listing: union', () => {
  test('GET /v1/models lists every model once, in the order of the replicas, without asking them', async () => {
    await using replica = await startFakeReplica();
    const urlOf = (path: string) => `${replica.url}/${path}`;
    const replicas = [
      { name: 'a', url: urlOf('a'), models: ['m', 'org/large'] },
      { name: 'b', url: urlOf('b'), models: ['n', 'm'] },
      { name: 'c', url: urlOf('c'), models: ['*'] },
    ];
    await using gateway = await startGateway({ replicas, config: UNION });
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });

    const response = await fetch(`${gateway.url}/v1/models`);

    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(await response.json()).toEqual({
      object: 'list',
      data: [toModel('m'), toModel('org/large'), toModel('n')],
    });
    expect(replica.requests).toHaveLength(0);
    expect(await gateway.stats()).toMatchObject({ recorded: 0 });
  });

  test('GET /v1/models/{id} is that model, its name escaped or not', async () => {
    await using replica = await startFakeReplica();
    const models = ['org/large', '__proto__', 'ünder 50%'];
    const replicas = [{ name: 'a', url: replica.url, models }];
    await using gateway = await startGateway({ replicas, config: UNION });
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });

    for (const id of models) expect(await openai.models.retrieve(id)).toMatchObject(toModel(id));
    expect(await (await fetch(`${gateway.url}/v1/models/org/large?x=1`)).json()).toEqual(
      toModel('org/large'),
    );
    for (const path of ['', 'org', 'constructor', '%zz', '*']) {
      const response = await fetch(`${gateway.url}/v1/models/${path}`);
      expect(response.status, path).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: 'model_not_found' } });
    }
    expect(replica.requests).toHaveLength(0);
  });

  test('a client sees the models that its key may use', async () => {
    await using replica = await startFakeReplica();
    const key_sha256 = createHash('sha256').update('narrow').digest('hex');
    const clients = [{ name: 'narrow', key_sha256, models: ['n', 'gone'] }];
    const replicas = [{ name: 'a', url: replica.url, models: ['m', 'n'] }];
    await using gateway = await startGateway({ replicas, config: { ...UNION, clients } });
    const ask = (path: string) => fetch(gateway.url + path, { headers: { Authorization: 'Bearer narrow' } });

    expect(await (await ask('/v1/models')).json()).toEqual({ object: 'list', data: [toModel('n')] });
    expect((await ask('/v1/models/n')).status).toBe(200);
    expect((await ask('/v1/models/m')).status).toBe(404);
    expect((await fetch(`${gateway.url}/v1/models/n`)).status).toBe(401);
  });

  test('a reload changes the list, and models of replicas that list them appear', async () => {
    await using replica = await startFakeReplica({
      list: { models: ['x', 'y'] },
      script: answerJson({ from: 'replica' }),
    });
    const replicas = [{ name: 'a', url: replica.url, models: 'auto' as const }];
    await using gateway = await startGateway({ replicas });
    await gateway.untilReachability('a', 'reachable');
    expect(await (await fetch(`${gateway.url}/v1/models`)).json()).toEqual({ from: 'replica' });
    expect((await fetch(`${gateway.url}/v1/models/x`)).status).toBe(404);
    gateway.writeConfig({ config: UNION });
    expect((await gateway.reload()).status).toBe(200);
    expect(await (await fetch(`${gateway.url}/v1/models`)).json()).toMatchObject({
      data: [{ id: 'x' }, { id: 'y' }],
    });
  });
});
