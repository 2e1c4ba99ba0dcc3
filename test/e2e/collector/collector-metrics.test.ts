import { afterEach, expect, test, vi } from 'vitest';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
import { requireCollector, startRealCollector, WITH_COLLECTOR } from '#testkit/servers/real-collector.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const NAMES = /^(http|gen_ai|gateway|otel|process|nodejs_eventloop_time)_/;

afterEach(() => void vi.unstubAllEnvs());

test.for(['cumulative', 'delta', 'lowmemory'])(
  'metrics pushed to a real collector as %s come out of it as GET /metrics has them',
  WITH_COLLECTOR,
  async (temporality, context) => {
    vi.stubEnv('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE', temporality);
    await using collector = await startRealCollector(await requireCollector(context));
    await using replica = await startSimulatedReplica();
    const config = { metrics: { otlp: true, interval: '100ms' } };
    await using gateway = await startGateway({ replicas: [replica], collector, config });
    for (const stream of [true, false]) await (await gateway.chat({ stream })).text();
    await (await gateway.chat({ model: 'nobody' })).text();
    await gateway.waitForRecords(3);

    const requestsIn = (text: string) => sumBy(parseSamples(text), 'gateway_requests_total')[''];
    const passedOn = parseSamples(await collector.untilMetrics((text) => requestsIn(text) === 3));
    const own = parseSamples(await (await gateway.admin('/metrics')).text());

    const namesOf = (samples: typeof own) =>
      [...new Set(samples.map(({ name }) => name))].filter((name) => NAMES.test(name)).toSorted();
    expect(namesOf(passedOn)).toEqual(namesOf(own));
    for (const [name, label] of [
      ['gateway_requests_total', 'http_response_status_code'],
      ['http_server_request_duration_seconds_bucket', 'le'],
      ['gen_ai_server_time_to_first_token_seconds_sum', 'gateway_replica'],
      ['gateway_tokens_completion_total', 'gen_ai_request_model'],
    ] as const) {
      expect(sumBy(passedOn, name, label), name).toEqual(sumBy(own, name, label));
    }
  },
);

test.for(['http/protobuf', 'http/json'])(
  'a real collector takes the traces of requests as exemplars of a push with %s',
  WITH_COLLECTOR,
  async (protocol, context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await using replica = await startSimulatedReplica();
    const config = { metrics: { otlp: true, interval: '100ms' }, export: { protocol } };
    await using gateway = await startGateway({ replicas: [replica], collector, config });
    await (await gateway.chat({ stream: true })).text();
    const { trace_id } = await gateway.nextRecord();

    const exemplarOf = (name: string) => new RegExp(`^${name}_bucket\\{.*# \\{.*trace_id="${trace_id}"`, 'm');
    const wanted = ['http_server_request_duration_seconds', 'gen_ai_server_time_to_first_token_seconds'];
    await collector.untilMetrics(
      (text) => wanted.every((name) => exemplarOf(name).test(text)),
      'application/openmetrics-text',
    );
  },
);
