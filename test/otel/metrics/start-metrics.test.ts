import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ExportCounters } from '#otel/queue';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import {
  type Metrics,
  type MetricsCollaborators,
  type MetricsSettings,
  startMetrics,
} from '../../../otel/metrics/start-metrics.ts';
import { GATEWAY_SOURCES } from './gateway-sources.ts';

afterEach(() => vi.unstubAllEnvs());

async function start(push: MetricsSettings['push'], sources: Partial<MetricsCollaborators> = {}) {
  const log = createQuietLog();
  const metrics = await startMetrics(
    { maxNames: 10, urlScheme: 'https', push },
    {
      isKnownModel: () => false,
      replicaUrl: (name) => `http://${name}:8000`,
      ...GATEWAY_SOURCES,
      ...sources,
      exportState: () => ({
        stats: { ...new ExportCounters().values, recorded: 3, queued: 1 },
        queueCapacity: 16_384,
        inflight: 0,
      }),
      resource: resourceFromAttributes({ 'service.name': 'spangate' }),
      collector: undefined,
      log,
    },
  );
  return { metrics, log };
}

/** A busy machine takes long for very many series: only a push that hangs takes so long. */
const UNHURRIED_MS = 60_000;
const textOf = async (metrics: Metrics) => (await Array.fromAsync(metrics.toExposition('text'))).join('');

interface WirePoint {
  readonly asInt?: string | number;
  readonly count?: string | number;
}

/** The first number of each metric of a push, by the metric's name. */
function numbersOf(call: FakeCollector['calls'][number] | undefined): Readonly<Record<string, number>> {
  const { resourceMetrics } = JSON.parse(call?.body ?? '{}');
  const { metrics } = resourceMetrics[0].scopeMetrics[0];
  return Object.fromEntries(
    metrics.map(
      ({ name, sum, histogram }: Record<string, { dataPoints: WirePoint[] }> & { name: string }) => {
        const [point] = (sum ?? histogram)?.dataPoints ?? [];
        return [name, Number(point?.asInt ?? point?.count)];
      },
    ),
  );
}

describe('the text for Prometheus', () => {
  test('has the same names and units as the Collector’s', async () => {
    const { metrics } = await start(undefined);
    metrics.record({ ...LEAST_RECORD, tenant: 'a "b"\\ c', e2e_ms: 85 });
    const lines = (await textOf(metrics)).split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'target_info{service_name="spangate"} 1',
        '# TYPE http_server_request_duration_seconds histogram',
        'http_server_request_duration_seconds_sum{http_request_method="POST",url_scheme="https",' +
          'http_route="/v1/chat/completions",http_response_status_code="200"} 0.085',
        'gateway_requests_total{gateway_tenant="a \\"b\\"\\\\ c",http_response_status_code="200"} 1',
        'gateway_replica_inflight{gateway_replica="vllm-a"} 2',
        'gateway_export_recorded_total 3',
        '# TYPE otel_sdk_processor_span_queue_size gauge',
      ]),
    );
  });
});

test('the text of many series comes in pieces, each metric with its type once', async () => {
  const { metrics } = await start(undefined);
  for (let tenant = 0; tenant < 10; tenant += 1) {
    for (let status = 200; status < 240; status += 1) {
      metrics.record({ ...LEAST_RECORD, tenant: `tenant-${tenant}`, status });
    }
  }
  const pieces = await Array.fromAsync(metrics.toExposition('text'));
  const text = pieces.join('');
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(64 * 1024);
  expect(text.match(/^gateway_requests_total\{/gm)).toHaveLength(400);
  expect(text.match(/^http_server_request_duration_seconds_count\{/gm)).toHaveLength(40);
  expect(text.match(/^# TYPE .*$/gm)).toHaveLength(new Set(text.match(/^# TYPE .*$/gm)).size);
  expect(text).not.toContain('\n\n');
});

test('each metric is collected when it is written, not all of them before the first', async () => {
  const { metrics } = await start(undefined);
  metrics.record({ ...LEAST_RECORD, tenant: 'before' });
  let text = '';
  for await (const piece of metrics.toExposition('text')) {
    if (text === '') metrics.record({ ...LEAST_RECORD, tenant: 'meanwhile' });
    text += piece;
  }
  expect(text).toMatch(/^gateway_requests_total\{gateway_tenant="meanwhile".*\} 1$/m);
});

describe('the push', () => {
  test('is several calls of few series, which together are complete', async () => {
    await using collector = await startFakeCollector();
    const { metrics } = await start({ endpoint: collector.url, intervalMs: 3_600_000 });
    for (let status = 200; status < 600; status += 1) metrics.record({ ...LEAST_RECORD, status });
    await metrics.shutdown(UNHURRIED_MS);
    const points = collector.calls.flatMap(({ body }) =>
      JSON.parse(body).resourceMetrics[0].scopeMetrics[0].metrics.flatMap(
        ({ name, sum, histogram }: Record<string, { dataPoints: WirePoint[] }>) =>
          (sum ?? histogram)?.dataPoints.map(() => name),
      ),
    );
    expect(collector.calls.length).toBeGreaterThan(5);
    expect(points.filter((name) => name === 'gateway.requests')).toHaveLength(400);
    expect(points.filter((name) => name === 'http.server.request.duration')).toHaveLength(400);
    expect(points.filter((name) => name === 'gateway.export.recorded')).toHaveLength(1);
  });

  test('is several calls for very many replicas and models, too', async () => {
    await using collector = await startFakeCollector();
    const names = Array.from({ length: 1000 }, (_, index) => `name-${index}`);
    const push = { endpoint: collector.url, intervalMs: 3_600_000 };
    const [replica] = GATEWAY_SOURCES.replicas();
    const { metrics } = await start(push, {
      replicas: () => (replica === undefined ? [] : names.map((name) => ({ ...replica, name }))),
      models: () => names.map((name) => ({ name, known: 1, available: 1 })),
      shadows: () => [],
    });
    await metrics.shutdown(UNHURRIED_MS);
    const seriesCounts = collector.calls.map(
      ({ body }) => body.match(/"key":"(gateway\.replica|gen_ai\.request\.model)"/g)?.length ?? 0,
    );
    expect(seriesCounts.reduce((sum, count) => sum + count, 0)).toBe(20 * names.length);
    expect(Math.max(...seriesCounts)).toBeLessThan(200);
  });

  test('goes to v1/metrics of the endpoint, with the headers of metrics, in intervals', async () => {
    await using collector = await startFakeCollector();
    vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_HEADERS', 'x-key=secret');
    const { metrics } = await start({ endpoint: `${collector.url}/base/`, intervalMs: 20 });
    metrics.record(LEAST_RECORD);
    await collector.waitFor(({ calls }) => calls.length >= 2);
    const [first] = collector.calls;
    expect(first?.path).toBe('/base/v1/metrics');
    expect(first?.headers).toMatchObject({ 'content-type': 'application/x-protobuf', 'x-key': 'secret' });
    expect(numbersOf(first)).toMatchObject({
      'http.server.request.duration': 1,
      'gateway.requests': 1,
      'gateway.replica.inflight': 2,
      'gateway.export.recorded': 3,
    });
    await metrics.shutdown(UNHURRIED_MS);
  });

  test('takes address and interval from the variables of metrics if the configuration has none', async () => {
    await using collector = await startFakeCollector();
    vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', `${collector.url}/own/metrics`);
    vi.stubEnv('OTEL_METRIC_EXPORT_INTERVAL', '20');
    const { metrics } = await start({});
    await collector.waitFor(({ calls }) => calls.length >= 1);
    expect(collector.calls[0]?.path).toBe('/own/metrics');
    await metrics.shutdown(UNHURRIED_MS);
  });

  test('sends what was counted since the last interval at shutdown', async () => {
    await using collector = await startFakeCollector();
    const { metrics } = await start({ endpoint: collector.url, intervalMs: 3_600_000 });
    metrics.record(LEAST_RECORD);
    await metrics.shutdown(UNHURRIED_MS);
    expect(collector.calls.map(numbersOf)).toMatchObject([{ 'gateway.requests': 1 }]);
  });

  test('is logged once when it fails and once when it works again; the next one carries all counts', async () => {
    await using collector = await startFakeCollector();
    collector.answerNext({ status: 404 }, { status: 404 });
    const { metrics, log } = await start({ endpoint: collector.url, intervalMs: 20 });
    metrics.record(LEAST_RECORD);
    await collector.waitFor(({ calls }) => calls.filter(({ status }) => status === 200).length >= 2);
    expect(numbersOf(collector.calls.at(-1))).toMatchObject({ 'gateway.requests': 1 });
    await metrics.shutdown(UNHURRIED_MS);
    expect(log.lines).toEqual([
      {
        level: 'warn',
        fields: {
          reason: 'http_404',
          collector: `${collector.url}/v1/metrics`,
          advice: expect.stringContaining('export.endpoint'),
        },
        message: 'the collector does not take metrics',
      },
      { level: 'info', fields: {}, message: 'the collector takes metrics again' },
    ]);
  });

  test('does not hold up a shutdown beyond its deadline', async () => {
    await using silent = await startFakeCollector();
    silent.answerAlways(() => undefined);
    const { metrics } = await start({ endpoint: silent.url, intervalMs: 3_600_000 });
    await metrics.shutdown(1);
  });

  test.each([
    ['OTEL_SDK_DISABLED', 'true'],
    ['OTEL_METRICS_EXPORTER', 'none'],
  ])('does not begin with %s=%s, and metrics are counted all the same', async (variable, value) => {
    await using collector = await startFakeCollector();
    vi.stubEnv(variable, value);
    const { metrics } = await start({ endpoint: collector.url, intervalMs: 20 });
    metrics.record(LEAST_RECORD);
    await metrics.shutdown(UNHURRIED_MS);
    expect(collector.calls).toEqual([]);
    expect(await textOf(metrics)).toContain('gateway_requests_total');
  });

  test('refuses an invalid address', async () => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', 'collector:4318');
    await expect(start({})).rejects.toThrow(
      'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is not an http or https URL',
    );
  });
});
