import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import type { CollectedSpan } from '#testkit/fake-collector.ts';
import {
  requireCollector,
  SHIPPED_CONFIG,
  startRealCollector,
  WITH_COLLECTOR,
} from '#testkit/servers/real-collector.ts';
import { startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';
import type { ServedRequest } from '../../../src/simulate/settings.ts';
import { type ClientFacts, runConcurrently, sendMixed } from './collector-clients.ts';

const nameOf = (field: string) => RECORD_FIELDS[field as keyof typeof RECORD_FIELDS].name;

const run = promisify(execFile);
const CONCURRENCY = 16;
const ENGINES = ['vllm', 'llamacpp', 'openai'] as const;

/** The counters as soon as nothing is queued: each answer is an event, nothing sleeps. */
async function untilDelivered(gateway: StartedGateway): Promise<Readonly<Record<string, number>>> {
  for (;;) {
    const stats = await gateway.stats();
    if (stats.queued === 0) return stats;
  }
}

/** The record's fields as attributes: every one of them, and nothing else under `gateway.`. */
function toFields({
  timings = {},
  route_ruled_out = {},
  ...record
}: Readonly<RequestRecord>): Record<string, unknown> {
  const under = (name: string, numbers: object) =>
    Object.entries(numbers).map(([key, value]) => [`gateway.${name}.${key}`, value] as const);
  return Object.fromEntries([
    ...Object.entries(record).map(([field, value]) => [nameOf(field), value] as const),
    ...under('timings', timings),
    ...under('route.ruled_out', route_ruled_out),
  ]);
}

const ofGateway = ({ attributes }: CollectedSpan) =>
  Object.fromEntries(Object.entries(attributes).filter(([name]) => name.startsWith('gateway.')));

/** The members that are known: an absent one says nothing. */
function known(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function expectAsClientSaw({ attributes, name }: CollectedSpan, seen: ClientFacts): void {
  expect(name).toBe(`POST ${seen.endpoint}`);
  expect(attributes).toMatchObject(
    known({
      'gateway.client_request_id': seen.clientRequestId,
      'gateway.endpoint': seen.endpoint,
      'url.path': seen.endpoint,
      'gateway.status': seen.status,
      'http.response.status_code': seen.status,
      'gateway.stream': seen.stream,
      'gateway.tenant': seen.tenant,
      'gateway.prompt_chars': seen.promptChars,
      'gateway.max_tokens': seen.maxTokens,
      'gen_ai.request.max_tokens': seen.maxTokens,
      'gateway.completion_tokens': seen.completionTokens,
    }),
  );
}

function expectAsReplicaSaw(span: CollectedSpan, replica: string, served: ServedRequest): void {
  const { usage, endpoint } = served;
  expect(served.traceparent).toBe(`00-${span.traceId}-${span.spanId}-01`);
  expect(span.attributes).toMatchObject(
    known({
      'gateway.replica': replica,
      'gateway.trace_id': span.traceId,
      'gateway.endpoint': endpoint,
      'gateway.status': served.status,
      'gateway.stream': served.stream,
      'gateway.prompt_tokens': usage?.promptTokens,
      'gen_ai.usage.input_tokens': usage?.promptTokens,
    }),
  );
  if (endpoint === '/v1/embeddings') return;
  expect(span.attributes['gateway.completion_tokens']).toBe(usage?.completionTokens);
  expect(span.attributes['gen_ai.usage.output_tokens']).toBe(usage?.completionTokens);
  expect(span.attributes['gateway.cached_tokens'] ?? 0).toBe(usage?.cachedTokens);
}

/** `name{labels} value` of Prometheus' text, of spans of requests, summed by the values of these labels. */
function sumSamples(text: string, name: string, labels: readonly string[]): Record<string, number> {
  const sums: Record<string, number> = {};
  const samples = new RegExp(`^${name}\\{(.*span_name="POST .*)\\} (\\S+)`, 'gm');
  for (const [, list = '', value] of text.matchAll(samples)) {
    const found = new Map([...list.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, label]) => [key, label]));
    const key = labels.map((label) => found.get(label) ?? '').join(' ');
    sums[key] = (sums[key] ?? 0) + Number(value);
  }
  return sums;
}

const countBy = <T>(items: readonly T[], toKey: (item: T) => string): Record<string, number> =>
  Object.fromEntries(
    Map.groupBy(items, toKey)
      .entries()
      .map(([key, group]) => [key, group.length]),
  );

describe('with a real OpenTelemetry Collector and the configuration that we ship,', WITH_COLLECTOR, () => {
  test('the collector finds nothing wrong with the configuration', async (context) => {
    const binary = await requireCollector(context);
    await run(binary, ['validate', '--config', SHIPPED_CONFIG]);
  });

  test('1,000 mixed requests are 1,000 spans that say what clients and replicas saw, and as many in the metrics', async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await using a = await startSimulatedReplica({ name: 'a', engine: ENGINES[0] });
    await using b = await startSimulatedReplica({ name: 'b', engine: ENGINES[1] });
    await using c = await startSimulatedReplica({ name: 'c', engine: ENGINES[2] });
    const replicas = [a, b, c];
    await using gateway = await startGateway({
      replicas: replicas.map(({ name, url }) => ({ name, url, engine: 'auto', models: 'auto' })),
      collector,
    });

    const seen: ClientFacts[] = [];
    await runConcurrently(1000, CONCURRENCY, async (index) => seen.push(await sendMixed(index, gateway)));
    const stats = await untilDelivered(gateway);
    const spans = await collector.untilSpans(1000);

    expect(stats).toMatchObject({ recorded: 1000, exported: 1000, dropped: 0, rejected: 0, failed_calls: 0 });
    const spanOf = new Map(spans.map((span) => [span.attributes['gateway.request_id'], span]));
    expect([spans.length, spanOf.size]).toEqual([1000, 1000]);
    const find = (requestId: string | null) => {
      const span = spanOf.get(requestId ?? '');
      if (span === undefined) throw new Error('a request has no span');
      return span;
    };
    for (const facts of seen) expectAsClientSaw(find(facts.requestId), facts);
    expect(replicas.flatMap(({ served }) => served.items)).toHaveLength(900);
    for (const { name, served } of replicas) {
      for (const one of served.items) expectAsReplicaSaw(find(one.requestId), name, one);
    }
    for (const record of gateway.records)
      expect(ofGateway(find(record.request_id))).toEqual(toFields(record));
    for (const { types, resource } of spans) {
      expect(types).toMatchObject({ 'gateway.e2e_ms': 'doubleValue', 'gateway.status': 'intValue' });
      expect(resource).toMatchObject({ 'service.name': 'spangate' });
    }

    const labels = ['span_name', 'gen_ai_request_model', 'gateway_replica', 'http_response_status_code'];
    const expected = countBy(gateway.records, (record) =>
      [`POST ${record.endpoint}`, record.model ?? '', record.replica ?? '', record.status].join(' '),
    );
    const isComplete = (text: string) =>
      Object.values(sumSamples(text, 'traces_span_metrics_calls_total', [])).join() === '1000';
    const metrics = await collector.untilMetrics(isComplete);
    expect(sumSamples(metrics, 'traces_span_metrics_calls_total', labels)).toEqual(expected);
    expect(sumSamples(metrics, 'traces_span_metrics_duration_seconds_count', labels)).toEqual(expected);
  });

  test('a collector that stops in the middle of a load and comes back has every record', async (context) => {
    await using collector = await startRealCollector(await requireCollector(context));
    await using replica = await startSimulatedReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      config: { export: { retry: { initial: '10ms', max: '100ms' } } },
    });
    const statuses: number[] = [];
    const load = (count: number) =>
      runConcurrently(count, CONCURRENCY, async (index) => {
        const response = await gateway.chat({ stream: index % 2 === 0 });
        await response.text();
        statuses.push(response.status);
      });

    await Promise.all([load(300), collector.stop()]);
    do await load(100);
    while (((await gateway.stats()).failed_calls ?? 0) < 3);
    expect((await gateway.stats()).queued).toBeGreaterThan(0);
    await Promise.all([load(300), collector.start()]);

    const stats = await untilDelivered(gateway);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(stats).toMatchObject({ recorded: statuses.length, exported: statuses.length });
    expect(stats).toMatchObject({ dropped: 0, rejected: 0, lost: 0 });
    const written = await collector.untilSpans(statuses.length);
    const ids = new Set(written.map(({ attributes }) => attributes['gateway.request_id']));
    expect(ids).toEqual(new Set(gateway.records.map(({ request_id }) => request_id)));
  });
});
