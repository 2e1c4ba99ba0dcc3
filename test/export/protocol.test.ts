import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const PROTOCOLS = [
  { protocol: 'http/protobuf', type: 'application/x-protobuf' },
  { protocol: 'http/json', type: 'application/json' },
] as const;

let stateDir: string;
let replica: FakeReplica;
let collector: FakeCollector;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  [replica, collector] = await Promise.all([startFakeReplica(), startFakeCollector()]);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([replica.close(), collector.close()]);
  await rm(stateDir, { recursive: true });
});

/** A gateway over the same state_dir as the one before it. `flush`: how long its shutdown waits for the collector. */
const start = (protocol?: string, flush = '5s') =>
  startGateway({
    replicas: [replica],
    collector,
    stateDir,
    config: {
      export: { retry: { initial: '1ms', max: '5ms' }, ...(protocol === undefined ? {} : { protocol }) },
      metrics: { otlp: true, interval: '50ms' },
      trace: { spans: 'operation' },
      shutdown: { flush },
    },
  });

const typesOf = (path: string) =>
  collector.calls.filter((call) => call.path === path).map(({ headers }) => headers['content-type']);

test.each(PROTOCOLS)(
  'with export.protocol $protocol, records, admin actions and metrics are sent as $type, whatever the variables say',
  async ({ protocol, type }) => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', protocol === 'http/json' ? 'http/protobuf' : 'http/json');
    vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', 'grpc');
    await using gateway = await start(protocol);
    await (await gateway.chat()).arrayBuffer();
    await (await gateway.admin(`/admin/replicas/${replica.name}/drain`, { method: 'POST' })).arrayBuffer();
    const [record] = await gateway.waitForRecords(1);
    await collector.waitFor(({ spans }) => spans.length === 3 && typesOf('/v1/metrics').length > 0);

    expect(new Set(typesOf('/v1/traces'))).toEqual(new Set([type]));
    expect(new Set(typesOf('/v1/metrics'))).toEqual(new Set([type]));
    expect(collector.spans.map(({ name }) => name).toSorted()).toEqual([
      'POST /v1/chat/completions',
      'chat m',
      'drain',
    ]);
    const [request] = collector.spans.filter(({ kind }) => kind === 2);
    expect(request?.attributes['gateway.request_id']).toBe(record?.request_id);
    expect(gateway.logLines.filter((line) => line.includes('protocol'))).toEqual([]);
  },
);

test.each(PROTOCOLS)('OTEL_EXPORTER_OTLP_PROTOCOL=$protocol chooses $type', async ({ protocol, type }) => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', protocol);
  await using gateway = await start();
  await (await gateway.chat()).arrayBuffer();
  await collector.waitFor(({ spans }) => spans.length === 2);
  expect(typesOf('/v1/traces')).toEqual([type]);
});

test('grpc is a warning for records and one for metrics, and both are sent as http/protobuf', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc');
  await using gateway = await start();
  await (await gateway.chat()).arrayBuffer();
  await collector.waitFor(({ spans }) => spans.length === 2);
  expect(typesOf('/v1/traces')).toEqual(['application/x-protobuf']);
  const warnings = gateway.logLines
    .map((line) => JSON.parse(line))
    .filter(({ protocol }) => protocol === 'grpc');
  expect(warnings.map(({ msg }) => msg)).toEqual([
    'the gateway does not have this protocol: traces are sent as http/protobuf',
    'the gateway does not have this protocol: metrics are sent as http/protobuf',
  ]);
});

test.each([
  ['http/protobuf', 'http/json'],
  ['http/json', 'http/protobuf'],
])('records that a gateway with %s has spooled are sent by one with %s', async (before, after) => {
  collector.answerAlways({ status: 503 });
  const first = await start(before, '50ms');
  for (let index = 0; index < 3; index++) await (await first.chat()).arrayBuffer();
  const records = await first.waitForRecords(3);
  expect(await first.close()).toMatchObject({ undeliveredRecords: 0 });
  const callCount = collector.calls.length;

  collector.answerAlways({});
  await using second = await start(after);
  await collector.waitFor(({ spans }) => spans.length === 6);
  const requests = collector.spans.filter(({ kind }) => kind === 2);
  expect(requests.map(({ attributes }) => attributes['gateway.request_id'])).toEqual(
    records.map(({ request_id }) => request_id),
  );
  const sent = collector.calls.slice(callCount).filter(({ path }) => path === '/v1/traces');
  expect(sent.map(({ headers }) => headers['content-type'])).toEqual(
    PROTOCOLS.filter(({ protocol }) => protocol === after).map(({ type }) => type),
  );
  await expect.poll(() => readdir(join(stateDir, 'spool'))).toEqual([]);
  expect(await second.stats()).toMatchObject({ restored: 3, exported: 3, unreadable: 0 });
});
