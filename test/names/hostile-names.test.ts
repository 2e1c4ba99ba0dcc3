import { describe, expect, test } from 'vitest';
import { parseConfig, printConfig } from '#config';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import {
  answerStream,
  chatChunk,
  DONE,
  event,
  type FakeReplica,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { toOverviewText } from '../../src/cli/operate/top/overview-text.ts';

/** Every plain object seems to have members of these names. */
const NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

/** A replica that calls everything it may name by one name: its model, its engine, its timings, its finish reason. */
async function startNamed(name: string): Promise<FakeReplica> {
  const timings = JSON.parse(`{"${name}": 1.5, "other_ms": 2}`) as object;
  const ending = event({ object: 'chat.completion.chunk', choices: [], usage: null, timings });
  return await startFakeReplica({
    name,
    list: { models: [name], ownedBy: name },
    script: answerStream([chatChunk('Hi'), chatChunk('', name), ending, DONE]),
  });
}

describe.each([1, 2])('names that every object seems to have, with %i workers', (workers) => {
  test('are names like any other, from a replica, a client, the configuration and the operator', async () => {
    await using collector = await startFakeCollector();
    await using replicas = new AsyncDisposableStack();
    const named: FakeReplica[] = [];
    for (const name of NAMES) named.push(replicas.use(await startNamed(name)));
    const stateDir = await temporaryFolder();
    const options = {
      replicas: named.map(({ name, url }) => ({ name, url, models: 'auto' as const, engine: 'auto' })),
      config: { gateway: { workers } },
      collector,
      stateDir,
    };
    {
      await using gateway = await startGateway(options);
      for (const name of NAMES) {
        const response = await gateway.chat(
          { model: name, stream: true },
          { headers: { 'X-Tenant': name, 'X-Feature': name } },
        );
        expect(await response.text()).toContain('data: [DONE]');
      }
      const records = await gateway.waitForRecords(NAMES.length);
      for (const name of NAMES) {
        const record = records.find(({ model }) => model === name);
        expect(record).toMatchObject({
          status: 200,
          replica: name,
          model: name,
          tenant: name,
          feature: name,
          finish_reasons: /^[a-z_]+$/i.test(name) ? [name] : undefined,
        });
        expect(record).not.toHaveProperty('error_type');
        expect(Object.entries(record?.timings ?? {})).toEqual([
          [name, 1.5],
          ['other_ms', 2],
        ]);
      }
      expect((await gateway.replicas()).map(({ models }) => models)).toEqual(NAMES.map((name) => [name]));
      const metrics = await (await gateway.admin('/metrics')).text();
      const overview = await (await gateway.admin('/admin/overview')).json();
      for (const name of NAMES) {
        expect(metrics).toContain(`gateway_tenant="${name}"`);
        expect(toOverviewText(overview, 'gateway')).toContain(`${name} `);
        const drained = await gateway.admin(`/admin/replicas/${name}/drain`, { method: 'POST' });
        expect(await drained.json()).toMatchObject({ was_drained: false, replica: { name, drained: true } });
      }
      const unknown = await gateway.admin('/admin/replicas/isPrototypeOf/drain', { method: 'POST' });
      expect(unknown.status).toBe(404);
    }
    const attributes = collector.spans.flatMap((span) => Object.entries(span.attributes));
    for (const name of NAMES) expect(attributes).toContainEqual([`gateway.timings.${name}`, 1.5]);
    await using again = await startGateway(options);
    expect((await again.replicas()).map(({ name, drained }) => [name, drained])).toEqual(
      NAMES.map((name) => [name, true]),
    );
  });
});

test.each(NAMES)('a tenant header called %s is absent from requests without one', async (name) => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    config: { headers: { tenant: name, feature: name } },
  });
  expect((await gateway.chat()).status).toBe(200);
  const record = await gateway.nextRecord();
  expect(record).toMatchObject({ status: 200 });
  expect(record).not.toHaveProperty('tenant');
});

test.each(NAMES)('a variable called %s that is not set is an error of the configuration', (name) => {
  const text = `replicas: [{ name: a, url: "http://a", gpu_model: "\${${name}}" }]`;
  expect(() => parseConfig(text, { path: 'gateway.yaml', env: { ...process.env } })).toThrow(
    `the variable ${name} is not set`,
  );
});

test.each(NAMES)('a key called %s is unknown, and a replica may have that name', (name) => {
  const parse = (text: string) => parseConfig(text, { path: 'gateway.yaml', env: {} });
  const replicas = `replicas: [{ name: ${name}, url: "http://a" }]\n`;
  expect(printConfig(parse(replicas))).toContain(`name: ${name}`);
  expect(() => parse(`${replicas}log: { ${name}: { level: debug } }\n`)).toThrow(`log.${name}: unknown key`);
});
