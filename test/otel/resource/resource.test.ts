import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createResource, loadInstanceId } from '#otel/resource';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { refuseConfigFile, warnOfVariables } from '../../../otel/resource/environment.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spangate-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('service.instance.id', () => {
  test('is the same at each start', async () => {
    const path = join(directory, 'state/instance-id');
    const first = await loadInstanceId(path, createQuietLog());
    expect(first).toMatch(UUID);
    expect(await loadInstanceId(path, createQuietLog())).toBe(first);
  });

  test('is a new one, which is kept, if the file has none', async () => {
    const path = join(directory, 'instance-id');
    await writeFile(path, 'not an id');
    const id = await loadInstanceId(path, createQuietLog());
    expect(id).toMatch(UUID);
    expect((await readFile(path, 'utf8')).trim()).toBe(id);
  });

  test('is a new one, with a warning, if the file cannot be used', async () => {
    const log = createQuietLog();
    await writeFile(join(directory, 'file'), '');
    expect(await loadInstanceId(join(directory, 'file/instance-id'), log)).toMatch(UUID);
    expect(log.lines).toMatchObject([{ level: 'warn' }]);
  });
});

describe('the resource', () => {
  test('has the version and the id, and what the variables say wins', () => {
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'k8s.pod.name=gw-0,service.version=9');
    const { attributes } = createResource({ version: '1.2.3', instanceId: 'i' });
    expect(attributes).toMatchObject({
      'service.name': 'spangate',
      'service.version': '9',
      'service.instance.id': 'i',
      'k8s.pod.name': 'gw-0',
    });
  });

  test('and the scope of a gateway’s spans and metrics have its version; the id outlives it', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ name: 'a' });
    const ids = [await sendOne(collector, replica), await sendOne(collector, replica)];
    expect(ids[0]).toMatch(UUID);
    expect(ids[1]).toBe(ids[0]);
    const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'));
    expect(collector.spans[0]?.resource['service.version']).toBe(version);
    for (const path of ['/v1/traces', '/v1/metrics']) {
      const call = collector.calls.find((each) => each.path === path);
      const [resource] = Object.values(JSON.parse(call?.body ?? '')).flat() as [
        Record<string, { scope: object }[]>,
      ];
      const [scope] = resource?.scopeSpans ?? resource?.scopeMetrics ?? [];
      expect(scope?.scope, path).toMatchObject({ name: 'spangate', version });
    }
  });
});

/** Sends a request through a gateway with the state of the directory, and returns the instance id of its span. */
async function sendOne(collector: FakeCollector, replica: { readonly name: string; readonly url: string }) {
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    stateDir: directory,
    config: { metrics: { otlp: true } },
  });
  await (await gateway.chat()).arrayBuffer();
  await gateway.close();
  return collector.spans.at(-1)?.resource['service.instance.id'];
}

describe('variables', () => {
  test.each(['OTEL_CONFIG_FILE', 'OTEL_EXPERIMENTAL_CONFIG_FILE'])('%s is refused', (variable) => {
    vi.stubEnv(variable, '/etc/otel.yaml');
    expect(() => refuseConfigFile()).toThrow(`${variable} is set, but the gateway does not read`);
    vi.stubEnv(variable, '');
    expect(() => refuseConfigFile()).not.toThrow();
  });

  test('a gateway does not start with OTEL_CONFIG_FILE', async () => {
    vi.stubEnv('OTEL_CONFIG_FILE', '/etc/otel.yaml');
    const replicas = [{ name: 'a', url: 'http://127.0.0.1:1' }];
    await expect(startGateway({ replicas, stateDir: directory })).rejects.toThrow(/OTEL_CONFIG_FILE is set/);
  });

  test.each([
    ['OTEL_TRACES_SAMPLER', 'parentbased_always_on'],
    ['OTEL_TRACES_EXPORTER', 'none'],
    ['OTEL_PROPAGATORS', 'b3'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '10'],
    ['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', '1'],
    ['OTEL_LOGS_EXPORTER', 'otlp'],
    ['OTEL_LOG_LEVEL', 'debug'],
    ['OTEL_SDK_DISABLED', 'true'],
  ])('%s=%s has no effect or a partial one, and the log says so once', (variable, value) => {
    vi.stubEnv(variable, value);
    const log = createQuietLog();
    warnOfVariables(log);
    expect(log.lines).toMatchObject([{ level: 'warn', fields: { variable } }]);
  });

  test.each([
    ['OTEL_TRACES_SAMPLER', 'always_on'],
    ['OTEL_TRACES_EXPORTER', 'otlp'],
    ['OTEL_PROPAGATORS', 'tracecontext,baggage'],
    ['OTEL_SDK_DISABLED', 'false'],
    ['OTEL_SERVICE_NAME', 'mine'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://collector:4318'],
    ['OTEL_RESOURCE_ATTRIBUTES_POD_NAME', 'gw-0'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', ''],
  ])('%s=%s is no warning', (variable, value) => {
    vi.stubEnv(variable, value);
    const log = createQuietLog();
    warnOfVariables(log);
    expect(log.lines).toEqual([]);
  });
});
