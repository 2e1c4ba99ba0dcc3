import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const CONFIG = { endpoints: ['rerank', 'pooling', 'tokenize'], prefix_hash: { block_chars: 1 } };

let replica: FakeReplica;
let gateway: StartedGateway;

beforeAll(async () => {
  replica = await startFakeReplica({ name: 'a' });
  gateway = await startGateway({ replicas: [replica], config: CONFIG });
});

afterAll(async () => {
  await Promise.all([gateway.close(), replica.close()]);
});

async function recordOf(path: string, body: object) {
  await (await gateway.post(path, body)).text();
  return gateway.nextRecord();
}

describe('a request that names no model', () => {
  test.each<[string, object]>([
    ['/tokenize', { content: 'ab' }],
    ['/rerank', { model: null, query: 'a', texts: ['b'] }],
    ['/pooling', { input: 'ab' }],
  ])('goes to the only model that is served: %s', async (path, body) => {
    const found = await recordOf(path, body);
    expect(found).toMatchObject({ model: 'm', replica: 'a', prompt_chars: 2 });
    expect(found).not.toHaveProperty('prefix_hashes');
  });

  test.each<[string, readonly (readonly string[])[]]>([
    ['there are two models', [['m', 'n']]],
    ['another replica serves another model', [['m'], ['n']]],
    ['a replica serves any model', [['*']]],
    ['a replica serves any model beside another', [['m'], ['*']]],
  ])('is 400 missing_model if %s', async (_, models) => {
    const replicas = models.map((names, index) => ({
      name: `r${index}`,
      url: `${replica.url}/${index}`,
      models: names,
    }));
    await using ambiguous = await startGateway({ replicas, config: CONFIG });
    const response = await ambiguous.post('/tokenize', { content: 'ab' });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'missing_model', param: 'model' } });
    expect(await ambiguous.nextRecord()).not.toHaveProperty('model');
  });

  test('is still 400 missing_model where a model is needed', async () => {
    const response = await gateway.post('/v1/embeddings', { input: 'ab' });
    expect(response.status).toBe(400);
    await gateway.nextRecord();
  });
});
