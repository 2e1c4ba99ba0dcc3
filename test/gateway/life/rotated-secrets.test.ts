import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readEnvironmentSecrets } from '#config/secrets';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';

let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  [replica, collector] = await Promise.all([startFakeReplica(), startFakeCollector()]);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([replica.close(), collector.close()]);
});

/** What calls of the collector have in `authorization` and `x-all`, by path. */
const sent = (path: string) =>
  collector.calls
    .filter((call) => call.path === path)
    .map(({ headers }) => [headers.authorization, headers['x-all']]);

test('headers for the collector come from files, and change with a reload, for records, admin actions and metrics', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_HEADERS', 'authorization=of-metrics');
  const env: Record<string, string> = { OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'authorization=of-metrics' };
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    config: { metrics: { otlp: true, interval: '20ms' } },
    readSecrets: async () => {
      const { collectorHeaders } = (await readEnvironmentSecrets(env)).secrets;
      return { collectorHeaders };
    },
  });
  const [all, traces] = [join(gateway.stateDir, 'all'), join(gateway.stateDir, 'traces')];
  env.OTEL_EXPORTER_OTLP_HEADERS_FILE = all;
  env.OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE = traces;
  await writeFile(all, 'authorization=general,x-all=1\n');
  await writeFile(traces, 'authorization=Bearer%20first\n');
  expect(await (await gateway.reload()).json()).toMatchObject({
    changed: [
      'OTEL_EXPORTER_OTLP_HEADERS_FILE',
      'OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE',
      'OTEL_EXPORTER_OTLP_METRICS_HEADERS_FILE',
    ],
  });

  await (await gateway.chat()).arrayBuffer();
  await collector.waitFor(() =>
    sent('/v1/traces').some(([key, more]) => key === 'Bearer first' && more === '1'),
  );
  await collector.waitFor(() =>
    sent('/v1/metrics').some(([key, more]) => key === 'of-metrics' && more === '1'),
  );

  await writeFile(traces, 'authorization=Bearer%20second\n');
  expect(await (await gateway.reload()).json()).toMatchObject({
    changed: ['OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE'],
  });
  const actions = () =>
    collector.calls.filter(
      ({ headers, spans }) =>
        headers.authorization === 'Bearer second' && spans.some(({ name }) => name === 'reload'),
    );
  await collector.waitFor(() => actions().length > 0);
  const before = sent('/v1/traces').length;
  await (await gateway.chat()).arrayBuffer();
  await collector.waitFor(() => sent('/v1/traces').length > before);
  expect(sent('/v1/traces').slice(before)).toEqual([['Bearer second', '1']]);
});

test('headers that cannot be sent refuse the reload, and the former ones stay', async () => {
  let general = 'authorization=first';
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    readSecrets: async () => ({ collectorHeaders: { general, traces: '', metrics: '' } }),
  });
  await gateway.reload();
  general = 'bad header=secret-value';
  gateway.writeConfig({ config: { timeouts: { idle: '7s' } } });
  const answer = await gateway.reload();
  const problems = await answer.text();
  expect(answer.status).toBe(422);
  expect(problems).toContain('OTEL_EXPORTER_OTLP_HEADERS');
  expect(problems + gateway.logLines.join('')).not.toContain('secret-value');
  await (await gateway.chat()).arrayBuffer();
  await collector.waitFor(({ spans }) => spans.some(({ name }) => name.includes('m')));
  expect(new Set(sent('/v1/traces').map(([key]) => key))).toEqual(new Set(['first']));
});

test('a salt that has changed in its file needs a restart, and each reload says so', async () => {
  let pepper = 'one';
  await using gateway = await startGateway({
    replicas: [replica],
    hashSalt: 'one',
    readSecrets: async () => ({ hashSalt: pepper }),
  });
  const reload = async () => await (await gateway.reload()).json();
  expect(await reload()).toMatchObject({ needs_restart: [] });
  pepper = 'two';
  expect(await reload()).toMatchObject({ changed: [], needs_restart: ['SVC_HASH_SALT_FILE'] });
  expect(await reload()).toMatchObject({ changed: [], needs_restart: ['SVC_HASH_SALT_FILE'] });
  pepper = 'one';
  expect(await reload()).toMatchObject({ needs_restart: [] });
});

test('a variable and its file are not both used', async () => {
  for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'SVC_HASH_SALT']) {
    await expect(readEnvironmentSecrets({ [name]: 'x=secret', [`${name}_FILE`]: '/secret' })).rejects.toThrow(
      `${name} and ${name}_FILE are both set: set only one of them`,
    );
  }
  const { secrets } = await readEnvironmentSecrets({ SVC_ADMIN_TOKEN: ADMIN_TOKEN });
  expect(secrets.tokens).toMatchObject([{ role: 'admin', token: ADMIN_TOKEN }]);
});
