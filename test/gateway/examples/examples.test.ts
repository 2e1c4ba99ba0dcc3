import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

const read = (example: string, file: string) => readFile(join(EXAMPLES, example, file), 'utf8');
const listExamples = async () =>
  (await readdir(EXAMPLES, { withFileTypes: true }))
    .filter((each) => each.isDirectory())
    .map(({ name }) => name);

interface ConfigFile {
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly [key: string]: unknown;
}

/** The gateway of an example, before simulated replicas; addresses, state and export are those of a test. `settings`: by replica. */
async function start(
  example: string,
  settings: Readonly<Record<string, { readonly errorRate: number }>> = {},
): Promise<StartedGateway> {
  const {
    replicas,
    gateway: _,
    export: __,
    ...config
  } = parse(await read(example, 'gateway.yaml')) as ConfigFile;
  const simulated = await Promise.all(
    replicas.map(async (replica) => {
      const started = await startSimulatedReplica({
        name: replica.name,
        models: ['demo'],
        ...settings[replica.name],
      });
      onTestFinished(() => started.replica.close());
      return { ...replica, url: started.url };
    }),
  );
  const gateway = await startGateway({ replicas: simulated, config: config as never });
  onTestFinished(() => gateway.close().then(() => undefined));
  return gateway;
}

const chat = async (gateway: StartedGateway, headers: Record<string, string> = {}, content = 'Hello') => {
  const body = { model: 'demo', messages: [{ role: 'user', content }] };
  const response = await gateway.post('/v1/chat/completions', body, { headers });
  const text = await response.text();
  return {
    status: response.status,
    code: JSON.parse(text).error?.code,
    retryAfter: response.headers.get('retry-after'),
  };
};

test('each example has a row in the list, a configuration, a compose file and a page that say the same', async () => {
  const names = await listExamples();
  const rows = (await readFile(join(EXAMPLES, 'README.md'), 'utf8')).match(/(?<=^\| \[)[\w-]+/gm);
  expect(rows?.toSorted()).toEqual(names.toSorted());
  for (const name of names) {
    const config = parseConfig(await read(name, 'gateway.yaml'), { path: `${name}/gateway.yaml`, env: {} });
    expect(config.health, name).toMatchObject({ passive: true, active: true });
    const { services } = parse(await read(name, 'compose.yaml'), { merge: true }) as {
      services: Record<string, { command?: readonly string[]; depends_on?: readonly string[] }>;
    };
    for (const other of services.gateway?.depends_on ?? [])
      expect(Object.keys(services), name).toContain(other);
    for (const replica of config.replicas)
      expect(services[replica.name]?.command, name).toContain(replica.name);
    expect(await read(name, 'README.md'), name).toContain('**You will see**');
  }
});

describe('what the page of an example promises comes true:', () => {
  test('vllm-two-replicas', async () => {
    const gateway = await start('vllm-two-replicas');
    await gateway.admin('/admin/replicas/vllm-0/drain', { method: 'POST' });
    for (let count = 0; count < 4; count += 1) expect(await chat(gateway)).toMatchObject({ status: 200 });
    const records = await gateway.waitForRecords(4);
    expect(new Set(records.map(({ replica }) => replica))).toEqual(new Set(['vllm-1']));
    expect((await gateway.replicas())[0]).toMatchObject({ name: 'vllm-0', drained: true, inflight: 0 });
  });

  test('keys-and-limits', async () => {
    const gateway = await start('keys-and-limits');
    const withKey = (key: string) => ({ Authorization: `Bearer ${key}`, 'X-Tenant': 'somebody-else' });
    expect(await chat(gateway)).toMatchObject({ status: 401 });
    expect(await chat(gateway, withKey('sk-wrong'))).toMatchObject({ status: 401 });
    expect(await chat(gateway, withKey('sk-example-batch'))).toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
    for (let count = 0; count < 3; count += 1) {
      expect(await chat(gateway, withKey('sk-example-search'))).toMatchObject({ status: 200 });
    }
    const refused = await chat(gateway, withKey('sk-example-search'));
    expect(refused).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^\d+$/) });
    const served = gateway.records.filter(({ status }) => status === 200);
    expect(new Set(served.map(({ tenant }) => tenant))).toEqual(new Set(['acme']));
  });

  test('prefix-affinity', async () => {
    const gateway = await start('prefix-affinity');
    const page = await read('prefix-affinity', 'README.md');
    const [, text = '', times] = /printf '(.+)%\.0s' \$\(seq (\d+)\)/.exec(page) ?? [];
    const prompt = text.repeat(Number(times));
    for (let count = 0; count < 6; count += 1) await chat(gateway, {}, `${prompt} Question ${count}`);
    const [first, ...further] = await gateway.waitForRecords(6);
    expect(new Set(further.map(({ replica }) => replica))).toEqual(new Set([first?.replica]));
    for (const { cached_tokens = 0 } of further) expect(cached_tokens).toBeGreaterThan(0);
    await gateway.admin(`/admin/replicas/${first?.replica}/drain`, { method: 'POST' });
    expect(await chat(gateway, {}, `${prompt} One more`)).toMatchObject({ status: 200 });
    expect((await gateway.waitForRecords(7)).at(-1)?.replica).not.toBe(first?.replica);
  });

  test('cost-per-tenant', async () => {
    const gateway = await start('cost-per-tenant');
    for (const tenant of ['acme', 'acme', 'globex']) await chat(gateway, { 'X-Tenant': tenant });
    await gateway.waitForRecords(3);
    interface Usage {
      readonly currency: string;
      readonly rows: readonly { readonly tenant: string; readonly requests: number; readonly cost: number }[];
    }
    const ask = async () => (await (await gateway.admin('/admin/usage?by=tenant')).json()) as Usage;
    await expect.poll(async () => (await ask()).rows.length).toBe(2);
    const { rows } = await ask();
    expect(rows.toSorted((a, b) => b.requests - a.requests)).toMatchObject([
      { tenant: 'acme', requests: 2, completion_tokens: 16, gpu_seconds: expect.any(Number) },
      { tenant: 'globex', requests: 1, completion_tokens: 8, gpu_seconds: expect.any(Number) },
    ]);
  });

  test('judge-a-build', async () => {
    const compose = await read('judge-a-build', 'compose.yaml');
    const errorRate = Number(/--error-rate, "([\d.]+)"/.exec(compose)?.[1]);
    const gateway = await start('judge-a-build', { 'vllm-new': { errorRate } });
    const verdict = async () => {
      expect(await chat(gateway)).toMatchObject({ status: 200 });
      return await (await gateway.admin('/admin/verdict?candidate=vllm-new')).json();
    };
    await expect.poll(verdict).toMatchObject({ verdict: 'bad' });
    expect(new Set(gateway.records.map(({ replica }) => replica))).toEqual(new Set(['vllm-0']));
  });
});
