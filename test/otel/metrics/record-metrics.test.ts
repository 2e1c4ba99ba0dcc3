import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GenAiNames } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import { FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import type { Distribution } from '../../../otel/metrics/metric-data.ts';
import { RecordMetrics } from '../../../otel/metrics/record-metrics.ts';
import { countOf, INTERVAL, pointsOf, totalOf } from './collected.ts';

const KNOWN_MODEL = 'llama-3.3-70b';

function createMetrics(maxNames = 100, genAi: GenAiNames = 'pinned') {
  return new RecordMetrics({
    maxNames,
    urlScheme: 'http',
    isKnownModel: (model) => model === KNOWN_MODEL,
    replicaUrl: (name) => (name === 'gone' ? undefined : `http://${name}:8000`),
    genAi,
  });
}

/** The metrics of these records. */
function collect(records: readonly RequestRecord[], maxNames?: number) {
  const metrics = createMetrics(maxNames);
  for (const record of records) metrics.record(record);
  return [...metrics.collect(INTERVAL)];
}

const STREAM: RequestRecord = {
  ...LEAST_RECORD,
  stream: true,
  model: KNOWN_MODEL,
  replica: 'vllm-a',
  tenant: 'acme',
  e2e_ms: 1500,
  ttft_ms: 500,
  completion_tokens: 11,
};

const arbitraryRecord: fc.Arbitrary<RequestRecord> = fc
  .record(
    {
      endpoint: fc.constantFrom('/v1/chat/completions', '/v1/completions', '/v1/embeddings'),
      status: fc.constantFrom(200, 400, 404, 499, 502, 503),
      e2e_ms: fc.double({ min: 0, max: 1e6, noNaN: true }),
      stream: fc.boolean(),
      model: fc.constantFrom(KNOWN_MODEL, 'a', 'b\nc', '__proto__'),
      replica: fc.constantFrom('vllm-a', 'vllm-b'),
      tenant: fc.constantFrom('acme', 'c', 'constructor'),
      error_type: fc.constantFrom('upstream_failed', 'client_closed', 'all_replicas_drained'),
      attempts: fc.nat({ max: 5 }),
      prompt_tokens: fc.nat(),
      cached_tokens: fc.nat(),
      completion_tokens: fc.nat(),
      reasoning_tokens: fc.nat(),
      ttft_ms: fc.nat(),
      gap_p50_ms: fc.nat(),
      gap_p95_ms: fc.nat(),
    },
    { requiredKeys: ['endpoint', 'status', 'e2e_ms', 'stream'] },
  )
  .map((fields) => ({ ...LEAST_RECORD, ...fields }));

const totalIn = (
  records: readonly RequestRecord[],
  toNumber: (record: RequestRecord) => number | undefined,
) => records.reduce((total, record) => total + (toNumber(record) ?? 0), 0);

const one = (isCounted: boolean) => (isCounted ? 1 : 0);

describe('records become metrics', () => {
  test('that count the records, whatever they hold', () => {
    fc.assert(
      fc.property(fc.array(arbitraryRecord, { maxLength: 60 }), (records) => {
        const metrics = collect(records);
        const hasSucceeded = ({ status, error_type }: RequestRecord) =>
          status < 400 && error_type === undefined;
        expect({
          requests: totalOf(metrics, 'gateway.requests'),
          http: totalOf(metrics, 'http.server.request.duration'),
          genAi: totalOf(metrics, 'gen_ai.server.request.duration'),
          failures: totalOf(metrics, 'gateway.failures'),
          attempts: totalOf(metrics, 'gateway.attempts'),
          prompt: totalOf(metrics, 'gateway.tokens.prompt'),
          cached: totalOf(metrics, 'gateway.tokens.cached'),
          tenants: totalOf(metrics, 'gateway.tenant.tokens.prompt'),
          tenantDurations: totalOf(metrics, 'gateway.tenant.request.duration'),
          tenantTtft: totalOf(metrics, 'gateway.tenant.time_to_first_token'),
          completion: totalOf(metrics, 'gateway.tokens.completion'),
          reasoning: totalOf(metrics, 'gateway.tokens.reasoning'),
          p50: totalOf(metrics, 'gateway.gap.p50'),
          p95: totalOf(metrics, 'gateway.gap.p95'),
          ttft: totalOf(metrics, 'gen_ai.server.time_to_first_token'),
          drained: totalOf(metrics, 'gateway.failures', { 'error.type': 'all_replicas_drained' }),
          successes: totalOf(metrics, 'gen_ai.server.request.duration', { 'error.type': undefined }),
        }).toEqual({
          requests: records.length,
          http: records.length,
          genAi: records.length,
          failures: totalIn(records, (record) => one(!hasSucceeded(record))),
          attempts: totalIn(records, ({ replica, attempts = 1 }) =>
            one(replica !== undefined && attempts > 0),
          ),
          prompt: totalIn(records, ({ prompt_tokens }) => prompt_tokens),
          cached: totalIn(records, ({ cached_tokens }) => cached_tokens),
          tenants: totalIn(records, ({ prompt_tokens }) => prompt_tokens),
          tenantDurations: records.length,
          tenantTtft: totalIn(records, (record) => one(record.ttft_ms !== undefined && hasSucceeded(record))),
          completion: totalIn(records, ({ completion_tokens }) => completion_tokens),
          reasoning: totalIn(records, ({ reasoning_tokens }) => reasoning_tokens),
          p50: totalIn(records, ({ gap_p50_ms }) => one(gap_p50_ms !== undefined)),
          p95: totalIn(records, ({ gap_p95_ms }) => one(gap_p95_ms !== undefined)),
          ttft: totalIn(records, (record) => one(record.ttft_ms !== undefined && hasSucceeded(record))),
          drained: totalIn(records, ({ error_type }) => one(error_type === 'all_replicas_drained')),
          successes: totalIn(records, (record) => one(hasSucceeded(record))),
        });
      }),
    );
  });

  test('with the attributes of the semantic conventions and ours', () => {
    const metrics = collect([STREAM, { ...FULL_RECORD, status: 502 }]);
    const attributesOf = (name: string) => pointsOf(metrics, name).at(-1)?.attributes;
    expect(attributesOf('http.server.request.duration')).toEqual({
      'http.request.method': 'POST',
      'url.scheme': 'http',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 502,
      'error.type': 'upstream_failed',
    });
    expect(attributesOf('gen_ai.server.request.duration')).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': KNOWN_MODEL,
      'gateway.replica': 'vllm-a',
      'error.type': 'upstream_failed',
    });
    expect(attributesOf('gateway.tokens.prompt')).toEqual({
      'gen_ai.request.model': KNOWN_MODEL,
      'gateway.replica': 'vllm-a',
    });
    expect(attributesOf('gateway.tenant.tokens.prompt')).toEqual({
      'gateway.tenant': 'acme',
      'gen_ai.request.model': KNOWN_MODEL,
    });
  });

  test('that tell successes from failures of every kind, with the reason', () => {
    const failures: readonly [reason: string, record: RequestRecord][] = [
      ['404', { ...STREAM, status: 404 }],
      ['500', { ...STREAM, status: 500 }],
      ['model_not_found', { ...STREAM, status: 404, error_type: 'model_not_found' }],
      ['client_closed', { ...STREAM, status: 499, error_type: 'client_closed' }],
      ['upstream_error', { ...STREAM, error_type: 'upstream_error' }],
      ['_OTHER', { ...STREAM, truncated: true }],
    ];
    const metrics = collect([STREAM, ...failures.map(([, record]) => record)]);
    const labels = { 'gateway.replica': 'vllm-a', 'gen_ai.request.model': KNOWN_MODEL };
    for (const [reason, { status }] of failures) {
      const failure = { ...labels, 'error.type': reason, 'http.response.status_code': status };
      expect(totalOf(metrics, 'gateway.failures', failure)).toBe(1);
      const tenant = { 'gateway.tenant': 'acme', 'error.type': reason };
      expect(totalOf(metrics, 'gateway.tenant.request.duration', tenant)).toBe(1);
      expect(totalOf(metrics, 'gen_ai.server.request.duration', { ...labels, 'error.type': reason })).toBe(1);
    }
    for (const name of ['gateway.tenant.request.duration', 'gen_ai.server.request.duration']) {
      expect(totalOf(metrics, name, { 'error.type': undefined })).toBe(1);
    }
    expect(totalOf(metrics, 'gateway.failures')).toBe(failures.length);
  });

  test('with the trace of the last request in each bucket of latency and first token', () => {
    const trace = (digit: string) => digit.repeat(32);
    const metrics = collect([
      { ...STREAM, trace_id: trace('a'), e2e_ms: 2000 },
      { ...STREAM, trace_id: trace('b'), e2e_ms: 2100 },
      { ...STREAM, trace_id: trace('c'), e2e_ms: 900_000 },
    ]);
    const exemplarsOf = (name: string) =>
      pointsOf(metrics, name).flatMap(({ value }) =>
        ((value as Distribution).exemplars ?? []).flatMap((exemplar) =>
          exemplar === undefined ? [] : [[exemplar.trace.traceId, exemplar.value]],
        ),
      );
    const durations = [
      [trace('b'), 2.1],
      [trace('c'), 900],
    ];
    expect(exemplarsOf('http.server.request.duration')).toEqual(durations);
    expect(exemplarsOf('gen_ai.server.request.duration')).toEqual(durations);
    expect(exemplarsOf('gateway.tenant.request.duration')).toEqual(durations);
    expect(exemplarsOf('gen_ai.server.time_to_first_token')).toEqual([[trace('c'), 0.5]]);
    expect(exemplarsOf('gateway.gap.p50')).toEqual([]);
  });

  test('with each attempt at its replica by what became of it, whoever answered in the end', () => {
    const failed = (replica: string, failure: string, status: number | null = null) => ({
      replica,
      failure,
      status,
      duration_ms: 5,
      after_ms: 5,
    });
    const failed_attempts = [
      failed('vllm-b', 'status_retried', 503),
      failed('vllm-c', 'not_connected'),
      failed('vllm-a', 'reset_on_reuse'),
    ];
    const hidden: RequestRecord = { ...STREAM, attempts: 4, failed_attempts };
    // The client got the answer of the attempt that failed, because no other replica took the request.
    const refused = { ...STREAM, status: 503, attempts: 1, failed_attempts: failed_attempts.slice(0, 1) };
    const metrics = collect([hidden, hidden, STREAM, { ...refused, replica: 'vllm-b' }]);
    expect(
      pointsOf(metrics, 'gateway.attempts').map(({ attributes, value }) => [
        attributes['gateway.replica'],
        attributes['gateway.attempt_outcome'],
        value,
      ]),
    ).toEqual([
      ['vllm-a', 'success', 3],
      ['vllm-b', 'error', 3],
      ['vllm-c', 'not_connected', 2],
      ['vllm-a', 'repeated', 2],
    ]);
    expect(totalOf(metrics, 'gateway.failures', { 'gateway.replica': 'vllm-b' })).toBe(1);
  });

  test('with the attempts of 1,024 replicas, whatever their outcomes, without a series for the rest', () => {
    const failures = [
      ['not_connected'],
      ['loading'],
      ['status_retried', 503],
      ['status_retried', 429],
    ] as const;
    const records = Array.from({ length: 1_024 }, (_, index): RequestRecord => {
      const replica = `r${index}`;
      const failed_attempts = failures.map(([failure, status = null]) => ({
        replica,
        failure,
        status,
        duration_ms: 1,
        after_ms: 1,
      }));
      return { ...STREAM, replica, attempts: 5, failed_attempts };
    });
    const points = pointsOf(collect(records), 'gateway.attempts');
    expect(points).toHaveLength(5 * 1_024);
    expect(points.every(({ attributes }) => 'gateway.replica' in attributes)).toBe(true);
  });

  test('with times in seconds, and a value that is an upper bound in its bucket', () => {
    const [point] = pointsOf(collect([{ ...STREAM, e2e_ms: 2500 }]), 'http.server.request.duration');
    expect(point?.value).toMatchObject({
      buckets: {
        boundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
        counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
      },
      sum: 2.5,
      count: 1,
    });
  });

  test('with the time per output token after the first', () => {
    const [point] = pointsOf(collect([STREAM]), 'gen_ai.server.time_per_output_token');
    expect(point?.value).toMatchObject({ sum: 0.1, count: 1 });
  });

  test('without a time per output token for a stream that broke off, or of one token', () => {
    const broken: RequestRecord = { ...STREAM, truncated: true, error_type: 'upstream_failed' };
    const metrics = collect([broken, { ...STREAM, completion_tokens: 1 }]);
    expect(totalOf(metrics, 'gen_ai.server.time_to_first_token')).toBe(1);
    expect(totalOf(metrics, 'gen_ai.server.time_per_output_token')).toBe(0);
  });

  test('with each cost in the currency of its record, which may be from before a restart with another one', () => {
    const costs = { EUR: 1.5, USD: 0.25 };
    const records = Object.entries(costs).map(([currency, cost]) => ({ ...STREAM, cost, currency }));
    const points = pointsOf(collect(records), 'gateway.cost');
    expect(points.map(({ attributes, value }) => [attributes['gateway.currency'], value])).toEqual(
      Object.entries(costs),
    );
  });

  test('without series for absent fields', () => {
    const names = collect([LEAST_RECORD]).map(({ descriptor }) => descriptor.name);
    expect(names).toEqual([
      'http.server.request.duration',
      'gen_ai.server.request.duration',
      'gateway.tenant.request.duration',
      'gateway.requests',
    ]);
  });

  test('that do not shrink when an engine reports negative token counts or no numbers', () => {
    const figures = [-5, Number.NaN, Number.POSITIVE_INFINITY, 7];
    const metrics = collect(figures.map((prompt_tokens) => ({ ...STREAM, prompt_tokens })));
    expect(totalOf(metrics, 'gateway.tokens.prompt')).toBe(7);
  });
});

describe('clients cannot grow the metrics', () => {
  const HOSTILE_COUNT = 10_000;
  const hostile = (record: RequestRecord) =>
    Array.from({ length: HOSTILE_COUNT }, (_, index) => ({
      ...record,
      model: `model-${index}`,
      tenant: `tenant-${index}`,
    }));

  /** All values of an attribute over all series. */
  const valuesOf = (metrics: ReturnType<typeof collect>, attribute: string) =>
    new Set(
      metrics.flatMap(({ dataPoints }) => dataPoints.map(({ attributes }) => String(attributes[attribute]))),
    );

  test('with 10,000 names of failed requests: all of them are _OTHER', () => {
    const metrics = collect(hostile({ ...LEAST_RECORD, status: 404, error_type: 'model_not_found' }));
    expect(pointsOf(metrics, 'gateway.requests')).toHaveLength(1);
    expect(totalOf(metrics, 'gateway.requests', { 'gateway.tenant': '_OTHER' })).toBe(HOSTILE_COUNT);
    const durations = 'gen_ai.server.request.duration';
    expect(totalOf(metrics, durations, { 'gen_ai.request.model': '_OTHER' })).toBe(HOSTILE_COUNT);
  });

  test('with 10,000 names that a replica accepts: only the first few have their own series', () => {
    const metrics = collect(hostile(STREAM), 20);
    for (const attribute of ['gen_ai.request.model', 'gateway.tenant']) {
      const values = valuesOf(metrics, attribute);
      values.delete('undefined');
      expect(values.size).toBe(21);
      expect(values).toContain('_OTHER');
    }
    expect(totalOf(metrics, 'gateway.requests')).toBe(HOSTILE_COUNT);
  });

  test('and a model that a replica is known to serve keeps its name', () => {
    const metrics = collect([...hostile(STREAM), { ...LEAST_RECORD, model: KNOWN_MODEL, status: 503 }], 20);
    const durations = 'gen_ai.server.request.duration';
    expect(totalOf(metrics, durations, { 'gen_ai.request.model': KNOWN_MODEL })).toBe(1);
  });

  test('nor replicas that come and go those of attempts: beyond 8,192 series, one has the rest', () => {
    const records = Array.from({ length: 9_000 }, (_, index) => ({ ...STREAM, replica: `pod-${index}` }));
    const metrics = collect(records);
    expect(pointsOf(metrics, 'gateway.attempts')).toHaveLength(8_192);
    expect(totalOf(metrics, 'gateway.attempts')).toBe(9_000);
  });

  test('with combinations: beyond 2,000 series, a metric has one for the rest', () => {
    const metrics = collect(hostile(STREAM), HOSTILE_COUNT);
    for (const { dataPoints } of metrics) expect(dataPoints.length).toBeLessThanOrEqual(2000);
    const overflow = pointsOf(metrics, 'gateway.requests').filter(
      ({ attributes }) => attributes['otel.metric.overflow'] === true,
    );
    expect(overflow.map(({ value }) => countOf(value))).toEqual([HOSTILE_COUNT - 1999]);
  });
});
