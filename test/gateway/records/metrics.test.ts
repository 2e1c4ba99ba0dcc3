import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { askUntil } from '#testkit/ask-until.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, refusedUrlBeside, startFakeReplica, startFakeReplicas } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));

/** What Prometheus 2.42 sends. */
const PROMETHEUS_ACCEPT =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,' +
  'text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

const PROMETHEUS_3_ACCEPT =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,' +
  'application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,' +
  'text/plain;version=0.0.4;q=0.2,*/*;q=0.1';

/** As llama.cpp answers while it loads its model. */
const LOADING = '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}';

/** A version that Prometheus only reads. */
const OLD_OPENMETRICS = 'application/openmetrics-text; version=0.0.1';

const read = async (gateway: StartedGateway) => parseSamples(await (await gateway.admin('/metrics')).text());

/** How many records there are by what a function says of them; those of which it says nothing have the empty text. */
function countBy(
  records: readonly RequestRecord[],
  toKey: (record: RequestRecord) => string | number | undefined,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const record of records) {
    const key = String(toKey(record) ?? '');
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

const total = (records: readonly RequestRecord[], toNumber: (record: RequestRecord) => number | undefined) =>
  records.reduce((sum, record) => sum + (toNumber(record) ?? 0), 0);

describe('GET /metrics', () => {
  test('counts what the records of a run say, whatever became of the requests', async () => {
    await using a = await startSimulatedReplica({ name: 'a' });
    await using b = await startSimulatedReplica({ name: 'b', engine: 'llamacpp' });
    const refusing = { name: 'refusing', url: 'http://127.0.0.1:9', models: ['down'] };
    await using gateway = await startGateway({ replicas: [a, b, refusing] });
    const drained = async (response: Promise<Response>) => void (await (await response).text());
    for (const [index, tenant] of ['acme', 'umbrella', 'acme'].entries()) {
      const init = { headers: { 'X-Tenant': tenant } };
      await drained(gateway.chat({ max_tokens: 3 + index }, init));
      await drained(gateway.chat({ stream: true }, init));
      await drained(gateway.post('/v1/completions', { model: 'm', prompt: 'Hi', stream: true }, init));
      await drained(gateway.post('/v1/embeddings', { model: 'm', input: 'Hi' }, init));
    }
    await drained(gateway.chat({ model: 'nobody' }));
    await drained(gateway.chat({ model: 'down' }));
    await drained(gateway.post('/v1/chat/completions', '{"model":'));

    const records = await gateway.waitForRecords(15);
    const samples = await read(gateway);
    const counted = (label: string) => sumBy(samples, 'gateway_requests_total', label);
    expect(counted('http_response_status_code')).toEqual(countBy(records, ({ status }) => status));
    expect(counted('gateway_tenant')).toEqual(countBy(records, ({ tenant }) => tenant));
    const durations = (name: string, label: string) => sumBy(samples, `${name}_seconds_count`, label);
    expect(durations('http_server_request_duration', 'http_route')).toEqual(
      countBy(records, ({ endpoint }) => endpoint),
    );
    expect(durations('gen_ai_server_request_duration', 'gateway_replica')).toEqual(
      countBy(records, ({ replica }) => replica),
    );
    expect(durations('gen_ai_server_request_duration', 'gen_ai_request_model')).toEqual(
      countBy(records, ({ model }) => (model === 'nobody' ? '_OTHER' : model)),
    );
    const streams = records.filter(({ ttft_ms }) => ttft_ms !== undefined);
    expect(durations('gen_ai_server_time_to_first_token', 'gateway_replica')).toEqual(
      countBy(streams, ({ replica }) => replica),
    );
    expect(durations('gateway_gap_p95', '')).toEqual({ '': streams.length });
    const failures = records.filter(({ error_type }) => error_type !== undefined);
    for (const [label, toKey] of [
      ['error_type', ({ error_type }: RequestRecord) => error_type],
      ['gateway_replica', ({ replica }: RequestRecord) => replica],
    ] as const) {
      expect(sumBy(samples, 'gateway_failures_total', label)).toEqual(countBy(failures, toKey));
    }
    expect(sumBy(samples, 'gateway_failures_total', 'gen_ai_request_model')).toEqual({
      '': 1,
      _OTHER: 1,
      down: 1,
    });
    const byTenant = durations('gateway_tenant_request_duration', 'gateway_tenant');
    expect(byTenant).toEqual(countBy(records, ({ tenant }) => tenant));
    expect(sumBy(samples, 'gateway_attempts_total')).toEqual({ '': total(records, (r) => r.attempts) });
    expect(sumBy(samples, 'gateway_tokens_prompt_total')).toEqual({
      '': total(records, ({ prompt_tokens }) => prompt_tokens),
    });
    expect(sumBy(samples, 'gateway_tokens_completion_total')).toEqual({
      '': total(records, ({ completion_tokens }) => completion_tokens),
    });
    expect(sumBy(samples, 'gateway_export_recorded_total')).toEqual({ '': records.length });
  });

  test('has the failures of a replica that another one made good, by replica and outcome', async () => {
    await using replicas = await startFakeReplicas('a', 'b');
    replicas[0].answer(answerJson({}, { status: 503 }));
    const gone = { name: 'gone', url: refusedUrlBeside(replicas[0]) };
    await using gateway = await startGateway({
      replicas: [...replicas, gone],
      config: { retry: { statuses: [503] } },
    });
    for (let count = 0; count < 6; count++) await (await gateway.chat()).text();

    const records = await gateway.waitForRecords(6);
    const samples = await read(gateway);
    const attempts = sumBy(samples, 'gateway_attempts_total', 'gateway_replica');
    expect(records.every(({ status, replica }) => status === 200 && replica === 'b')).toBe(true);
    expect(sumBy(samples, 'gateway_attempts_total')).toEqual({ '': total(records, (r) => r.attempts) });
    expect(sumBy(samples, 'gateway_attempts_total', 'gateway_attempt_outcome')).toEqual({
      success: attempts.b,
      error: attempts.a,
      not_connected: attempts.gone,
    });
    expect(attempts.b).toBe(6);
    expect(attempts.a).toBeGreaterThan(0);
    expect(sumBy(samples, 'gateway_failures_total')).toEqual({});
  });

  test('counts what several workers record', async () => {
    await using replica = await startSimulatedReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica], config: { gateway: { workers: 2 } } });
    const send = async (tenant: string) =>
      void (await (await gateway.chat({ stream: true }, { headers: { 'X-Tenant': tenant } })).text());
    await Promise.all(Array.from({ length: 20 }, (_, index) => send(`tenant-${index % 3}`)));
    const records = await gateway.waitForRecords(20);
    const samples = await read(gateway);
    expect(sumBy(samples, 'gateway_requests_total', 'gateway_tenant')).toEqual(
      countBy(records, ({ tenant }) => tenant),
    );
    expect(sumBy(samples, 'gateway_tokens_completion_total')).toEqual({
      '': total(records, ({ completion_tokens }) => completion_tokens),
    });
  });

  test('shows requests in flight and drains while they last', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url }] });
    const gate = createGate();
    replica.answerOnce(gate.script);
    const answer = gateway.chat();
    await replica.nextRequest();
    await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    const during = await read(gateway);
    expect(sumBy(during, 'gateway_replica_inflight', 'gateway_replica')).toEqual({ a: 1 });
    expect(sumBy(during, 'gateway_replica_drained', 'gateway_replica')).toEqual({ a: 1 });
    gate.open();
    await (await answer).text();
    const inflight = async () => sumBy(await read(gateway), 'gateway_replica_inflight', 'gateway_replica');
    await askUntil(inflight, ({ a }) => a === 0);
  });

  test('shows which replicas fail, and how many requests wait', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: refusedUrlBeside(replica) },
        { name: 'b', url: replica.url, models: ['m', 'n'], max_inflight: 1 },
      ],
      config: { health: { active: false, frozen_after: 'off', failures: 1 } },
    });
    for (let requests = 0; requests < 2; requests++) await (await gateway.chat()).text();
    const gate = createGate();
    replica.answerOnce(gate.script);
    const answers = [gateway.chat({ model: 'n' }), gateway.chat({ model: 'n' })];
    const waiting = async () => sumBy(await read(gateway), 'gateway_waiting')[''];
    await askUntil(waiting, (count) => count === 1);
    expect(sumBy(await read(gateway), 'gateway_replica_failing', 'gateway_replica')).toEqual({ a: 1, b: 0 });
    gate.open();
    for (const answer of await Promise.all(answers)) await answer.text();
    expect(await waiting()).toBe(0);
  });

  test('shows which replicas answer, and how many of each model do', async () => {
    await using loading = await startFakeReplica();
    loading.answer(answerJson(LOADING, { status: 503, fields: ['Server', 'llama.cpp'] }));
    await using serving = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: refusedUrlBeside(serving), models: ['n'] },
        { name: 'b', url: serving.url, models: ['m', 'n'], max_inflight: 4 },
        { name: 'c', url: loading.url, models: ['o'], engine: 'llamacpp' },
      ],
    });
    for (const model of ['m', 'n', 'n', 'o']) await (await gateway.chat({ model })).text();
    const samples = await read(gateway);
    const ofReplicas = (name: string) => sumBy(samples, name, 'gateway_replica');
    const ofModels = (name: string) => sumBy(samples, name, 'gen_ai_request_model');
    expect(ofReplicas('gateway_replica_up')).toEqual({ a: 0, b: 1, c: 0 });
    expect(ofReplicas('gateway_replica_max_inflight')).toEqual({ b: 4 });
    expect(ofModels('gateway_model_replicas_known')).toEqual({ m: 1, n: 2, o: 1 });
    expect(ofModels('gateway_model_replicas_available')).toEqual({ m: 1, n: 1, o: 0 });
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
    const drained = await read(gateway);
    expect(sumBy(drained, 'gateway_replica_up', 'gateway_replica')).toEqual({ a: 0, c: 0 });
    expect(sumBy(drained, 'gateway_model_replicas_available', 'gen_ai_request_model')).toEqual({
      m: 0,
      n: 0,
      o: 0,
    });
  });

  test('shows the version, the process, its threads and what it uses of its limits', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url }],
      config: {
        gateway: { workers: 2 },
        limits: { connections: 500, buffered: '64MiB', queue: 20 },
      },
    });
    const gate = createGate();
    replica.answerOnce(gate.script);
    const answer = gateway.chat();
    await replica.nextRequest();
    const samples = await read(gateway);
    const total = (name: string) => sumBy(samples, name)[''];
    expect(samples.find(({ name }) => name === 'gateway_build_info')).toMatchObject({
      labels: { service_version: manifest.version, process_runtime_version: process.versions.node },
      value: 1,
    });
    expect([total('gateway_connections_open'), total('gateway_connections_limit')]).toEqual([1, 500]);
    expect(total('gateway_buffered_usage_bytes')).toBeGreaterThan(0);
    expect(total('gateway_buffered_limit_bytes')).toBe(64 * 1024 ** 2);
    expect(total('gateway_waiting_limit')).toBe(20);
    expect(total('process_cpu_time_seconds_total')).toBeGreaterThan(0);
    expect(total('process_memory_usage_bytes')).toBeGreaterThan(1024 ** 2);
    expect(total('process_uptime_seconds')).toBeGreaterThan(0);
    const loops = sumBy(samples, 'nodejs_eventloop_time_seconds_total', 'thread_name');
    expect(Object.keys(loops)).toEqual(['main', 'worker 1', 'worker 2']);
    gate.open();
    await (await answer).text();
    const delays = async () =>
      sumBy(await read(gateway), 'nodejs_eventloop_delay_max_seconds', 'thread_name');
    await askUntil(delays, (found) => Object.keys(found).length === 3);
  });

  test('asks for the admin token', async () => {
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: 'http://127.0.0.1:1' }] });
    expect((await fetch(`${gateway.adminUrl}/metrics`)).status).toBe(401);
  });

  test('is OpenMetrics with exemplars if the client prefers it, otherwise Prometheus text without', async () => {
    await using replica = await startSimulatedReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat({ stream: true })).text();
    const [record] = await gateway.waitForRecords(1);
    const scrape = async (accept: string) => {
      const headers = { Accept: accept, Authorization: `Bearer ${ADMIN_TOKEN}` };
      const answer = await fetch(`${gateway.adminUrl}/metrics`, { headers });
      expect(answer.headers.get('vary')).toBe('Accept');
      return { type: answer.headers.get('content-type'), text: await answer.text() };
    };
    const openMetrics = await scrape(PROMETHEUS_ACCEPT);
    expect(openMetrics.type).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(openMetrics.text).toMatch(/\n# EOF\n$/);
    const exemplar = ` # {trace_id="${record?.trace_id}"}`;
    for (const name of ['gen_ai_server_request_duration', 'gen_ai_server_time_to_first_token']) {
      const line = openMetrics.text.split('\n').find((each) => each.startsWith(name) && each.includes('#'));
      expect(line).toContain(exemplar);
    }
    expect((await scrape(PROMETHEUS_3_ACCEPT)).type).toBe(openMetrics.type);
    for (const accept of [
      '*/*',
      'text/plain',
      'application/openmetrics-text;q=0.2, text/plain',
      OLD_OPENMETRICS,
    ]) {
      const { type, text } = await scrape(accept);
      expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(text).not.toContain('trace_id');
    }
  });
});

test('what is not yet exported is told: the queue, and the call that fails again and again', async () => {
  await using collector = await startFakeCollector();
  collector.answerAlways({ status: 503 });
  await using replica = await startSimulatedReplica();
  const config = { metrics: { otlp: false }, export: { retry: { initial: '1ms', max: '1ms' } } };
  await using gateway = await startGateway({ replicas: [replica], collector, config });
  await (await gateway.chat()).text();
  await collector.waitFor(({ calls }) => calls.length >= 3);
  const samples = await read(gateway);
  expect(sumBy(samples, 'otel_sdk_processor_span_queue_size')).toEqual({ '': 1 });
  expect(sumBy(samples, 'otel_sdk_exporter_span_inflight', 'server_port')).toEqual({
    [collector.port]: 1,
  });
  expect(sumBy(samples, 'otel_sdk_processor_span_processed_total', 'error_type')).toEqual({
    '': 1,
    queue_full: 0,
  });
  expect(sumBy(samples, 'gateway_export_failed_calls_total')['']).toBeGreaterThan(0);
  collector.answerAlways({});
  await collector.waitFor(({ spans }) => spans.length === 1);
});

test('metrics are pushed to the collector of the records, and a push that fails costs no request', async () => {
  await using collector = await startFakeCollector();
  await using replica = await startSimulatedReplica();
  const config = { metrics: { otlp: true, interval: '20ms' } };
  await using gateway = await startGateway({ replicas: [replica], collector, config });
  const pushes = () => collector.calls.filter(({ path }) => path === '/v1/metrics');
  await collector.waitFor(() => pushes().length > 0);
  collector.answerAlways({ status: 500 });
  const response = await gateway.chat();
  await response.text();
  expect(response.status).toBe(200);
  collector.answerAlways({});
  const pushed = pushes().length;
  await collector.waitFor(() =>
    pushes()
      .slice(pushed)
      .some(({ body }) => body.includes('gateway.requests')),
  );
});
