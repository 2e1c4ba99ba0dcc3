import { describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** An Ollama that lists these models, as it does: with their tags. */
const startOllama = (name: string, ...models: string[]) =>
  startFakeReplica({ name, list: { models, ownedBy: 'library' } });

const known = ({ name, url }: FakeReplica) => ({ name, url, models: 'auto', engine: 'auto' }) as const;

async function statusOf(gateway: StartedGateway, model: string): Promise<number> {
  const response = await gateway.chat({ model });
  await response.arrayBuffer();
  return response.status;
}

describe('a model of Ollama without a tag', () => {
  test('is its latest, and goes upstream and into the record as it was asked for', async () => {
    await using ollama = await startOllama('o', 'otiny:latest', 'llama:8b', 'hub:5000/lib/m:latest');
    await using gateway = await startGateway({ replicas: [known(ollama)] });
    expect(await statusOf(gateway, 'otiny')).toBe(200);
    expect(await statusOf(gateway, 'otiny:latest')).toBe(200);
    expect(await statusOf(gateway, 'hub:5000/lib/m')).toBe(200);
    expect(await statusOf(gateway, 'llama')).toBe(404);
    expect(await statusOf(gateway, 'otiny:8b')).toBe(404);
    expect(await statusOf(gateway, 'otiny:latest:latest')).toBe(404);
    const bodies = await Promise.all(ollama.requests.map(({ body }) => body));
    expect(bodies.map((body) => JSON.parse(body.toString()).model)).toEqual([
      ...['otiny', 'otiny:latest', 'hub:5000/lib/m'],
    ]);
    expect((await gateway.waitForRecords(6)).slice(0, 2).map(({ model }) => model)).toEqual([
      ...['otiny', 'otiny:latest'],
    ]);
    expect(await gateway.replicas()).toMatchObject([
      { engine: 'ollama', models: ['otiny:latest', 'llama:8b', 'hub:5000/lib/m:latest'] },
    ]);
  });

  test('is its latest where the configuration lists it without one, too', async () => {
    await using ollama = await startOllama('o');
    const configured = { name: 'o', url: ollama.url, models: ['otiny'], engine: 'ollama' };
    await using gateway = await startGateway({ replicas: [configured] });
    expect(await statusOf(gateway, 'otiny:latest')).toBe(200);
  });

  test('takes turns together with its latest', async () => {
    await using a = await startOllama('a', 'otiny:latest');
    await using b = await startOllama('b', 'otiny:latest');
    await using gateway = await startGateway({ replicas: [known(a), known(b)] });
    for (const model of ['otiny', 'otiny:latest', 'otiny:latest', 'otiny', 'otiny', 'otiny:latest']) {
      expect(await statusOf(gateway, model)).toBe(200);
    }
    expect((await gateway.waitForRecords(6)).map(({ replica }) => replica)).toEqual([
      ...['a', 'b', 'a', 'b', 'a', 'b'],
    ]);
  });

  test('is another model on other engines', async () => {
    await using ollama = await startOllama('o', 'otiny:latest');
    await using vllm = await startFakeReplica({ name: 'v', list: { models: ['otiny'], ownedBy: 'vllm' } });
    await using gateway = await startGateway({ replicas: [known(ollama), known(vllm)] });
    const models = ['otiny', 'otiny', 'otiny', 'otiny', 'otiny:latest', 'otiny:latest'];
    for (const model of models) expect(await statusOf(gateway, model)).toBe(200);
    expect((await gateway.waitForRecords(6)).map(({ replica }) => replica)).toEqual([
      ...['o', 'v', 'o', 'v', 'o', 'o'],
    ]);
    ollama.list({ models: [], ownedBy: 'library' });
    await gateway.admin('/admin/replicas/o/undrain', { method: 'POST' });
    expect(await statusOf(gateway, 'otiny:latest')).toBe(404);
  });

  test('is among those that a drain of its last replica warns of', async () => {
    await using ollama = await startOllama('o', 'otiny:latest');
    await using gateway = await startGateway({ replicas: [known(ollama)] });
    const drained = await gateway.admin('/admin/replicas/o/drain', { method: 'POST' });
    expect(await drained.json()).toMatchObject({ warning: expect.stringContaining('otiny:latest') });
    expect(await statusOf(gateway, 'otiny')).toBe(503);
  });
});

test('a replica that lists the model * serves no other name by that', async () => {
  await using greedy = await startFakeReplica({ name: 'g', list: { models: ['*', 'own'] } });
  await using plain = await startFakeReplica({ name: 'p', list: { models: ['m'] } });
  await using gateway = await startGateway({ replicas: [known(greedy), known(plain)] });
  expect(await statusOf(gateway, 'own')).toBe(200);
  for (const model of ['m', 'm', 'm']) expect(await statusOf(gateway, model)).toBe(200);
  expect(await statusOf(gateway, 'other')).toBe(404);
  expect(await statusOf(gateway, '*')).toBe(404);
  expect(greedy.requests).toHaveLength(1);
  expect(await gateway.replicas()).toMatchObject([{ models: ['own'] }, { models: ['m'] }]);
});
