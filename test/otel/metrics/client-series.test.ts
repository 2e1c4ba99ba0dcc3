import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GenAiNames } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import { FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import type { Distribution } from '../../../otel/metrics/metric-data.ts';
import { RecordMetrics } from '../../../otel/metrics/record-metrics.ts';
import { INTERVAL, pointsOf, totalOf } from './collected.ts';

const STREAM: RequestRecord = {
  ...LEAST_RECORD,
  stream: true,
  attempts: 1,
  model: 'llama',
  response_model: 'llama',
  replica: 'vllm-a',
  e2e_ms: 1500,
  ttft_ms: 500,
  prompt_tokens: 120,
  completion_tokens: 11,
};

function collect(records: readonly RequestRecord[], genAi: GenAiNames = 'pinned') {
  let urls = new Map([
    ['vllm-a', 'http://10.0.0.1:8000'],
    ['vllm-b', 'https://[fd00::2]'],
  ]);
  const metrics = new RecordMetrics({
    maxNames: 10,
    urlScheme: 'http',
    genAi,
    isKnownModel: (model) => model === 'llama',
    replicaUrl: (name) => urls.get(name),
  });
  for (const record of records) {
    if (record.replica === 'moves') urls = new Map([...urls, ['vllm-a', 'http://10.0.0.9:8000']]);
    else metrics.record(record);
  }
  return [...metrics.collect(INTERVAL)];
}

const namesOf = (metrics: ReturnType<typeof collect>) => [
  ...new Set(metrics.map(({ descriptor }) => descriptor.name).filter((name) => /^gen_ai\.client/.test(name))),
];

const CALL = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': 'llama',
  'gen_ai.response.model': 'llama',
  'server.address': '10.0.0.1',
  'server.port': 8000,
};

describe('the names in use', () => {
  test('are a duration, the tokens by type and the time to the first chunk, with the address of the replica', () => {
    const metrics = collect([STREAM]);
    expect(namesOf(metrics)).toEqual([
      'gen_ai.client.operation.duration',
      'gen_ai.client.token.usage',
      'gen_ai.client.operation.time_to_first_chunk',
    ]);
    const [duration] = pointsOf(metrics, 'gen_ai.client.operation.duration');
    expect(duration).toMatchObject({ attributes: CALL, value: { sum: 1.5, count: 1 } });
    const usage = pointsOf(metrics, 'gen_ai.client.token.usage').map(({ attributes, value }) => [
      attributes['gen_ai.token.type'],
      (value as Distribution).sum,
    ]);
    expect(usage).toEqual([
      ['input', 120],
      ['output', 11],
    ]);
    const [first] = pointsOf(metrics, 'gen_ai.client.operation.time_to_first_chunk');
    expect(first?.value).toMatchObject({ sum: 0.5, count: 1 });
  });

  test('have the trace of a request in each bucket', () => {
    const trace_id = 'b'.repeat(32);
    const points = pointsOf(collect([{ ...STREAM, trace_id }]), 'gen_ai.client.token.usage');
    const exemplars = points.flatMap(({ value }) => (value as Distribution).exemplars ?? []);
    expect(exemplars.flatMap((exemplar) => exemplar ?? [])).toMatchObject([
      { trace: { traceId: trace_id }, value: 120 },
      { trace: { traceId: trace_id }, value: 11 },
    ]);
  });

  test('count a failure with its error.type, and a client that left without one', () => {
    const metrics = collect([
      { ...STREAM, status: 404 },
      { ...STREAM, status: 499, error_type: 'client_closed' },
      { ...STREAM, error_type: 'upstream_failed', truncated: true },
    ]);
    const types = pointsOf(metrics, 'gen_ai.client.operation.duration').map(
      ({ attributes }) => attributes['error.type'],
    );
    expect(types).toEqual(['404', undefined, 'upstream_failed']);
  });

  test('count a request that no replica could take, and none that was refused before', () => {
    const { attempts: _, replica: __, ...without } = STREAM;
    const metrics = collect([
      { ...without, status: 503, error_type: 'all_replicas_drained' },
      { ...without, status: 503, error_type: 'overloaded', queue_ms: 20 },
      { ...without, status: 401, error_type: 'invalid_api_key' },
      { ...without, status: 429, error_type: 'rate_limit_exceeded' },
      { ...without, status: 404, error_type: 'model_not_found' },
    ]);
    expect(totalOf(metrics, 'gen_ai.client.operation.duration')).toBe(2);
    expect(pointsOf(metrics, 'gen_ai.client.operation.duration')[0]?.attributes).not.toHaveProperty(
      'server.address',
    );
  });

  test('follow a replica to its new address', () => {
    const metrics = collect([STREAM, { ...STREAM, replica: 'moves' }, STREAM]);
    const addresses = pointsOf(metrics, 'gen_ai.client.operation.duration').map(
      ({ attributes }) => attributes['server.address'],
    );
    expect(addresses).toEqual(['10.0.0.1', '10.0.0.9']);
  });

  test('have an address of IPv6 without brackets, and the port of its scheme', () => {
    const [point] = pointsOf(collect([{ ...STREAM, replica: 'vllm-b' }]), 'gen_ai.client.operation.duration');
    expect(point?.attributes).toMatchObject({ 'server.address': 'fd00::2', 'server.port': 443 });
  });
});

describe('the newest names', () => {
  test('are in place of the others for inference alone', () => {
    expect(namesOf(collect([{ ...FULL_RECORD, status: 200 }], 'latest'))).toEqual([
      'gen_ai.client.inference.duration',
      'gen_ai.client.inference.time_to_first_chunk',
      'gen_ai.client.inference.usage.input_tokens',
      'gen_ai.client.inference.usage.output_tokens',
      'gen_ai.client.inference.usage.cache_read.input_tokens',
      'gen_ai.client.inference.usage.cache_write.input_tokens',
      'gen_ai.client.inference.usage.reasoning.output_tokens',
      'gen_ai.client.inference.operation.input_tokens',
      'gen_ai.client.inference.operation.output_tokens',
    ]);
    expect(namesOf(collect([{ ...STREAM, endpoint: '/v1/embeddings' }], 'latest'))).toEqual([
      'gen_ai.client.operation.duration',
    ]);
  });

  test('count every token in one modality', () => {
    const tokens = fc.nat({ max: 1_000_000 });
    const parts = fc.record(
      { prompt_audio_tokens: tokens, prompt_image_tokens: tokens, completion_audio_tokens: tokens },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(parts, tokens, tokens), { maxLength: 20 }), (requests) => {
        const records = requests.map(([some, prompt, completion]) => ({
          ...STREAM,
          ...some,
          prompt_tokens: (some.prompt_audio_tokens ?? 0) + (some.prompt_image_tokens ?? 0) + prompt,
          completion_tokens: (some.completion_audio_tokens ?? 0) + completion,
        }));
        const metrics = collect(records, 'latest');
        const sum = (field: 'prompt_tokens' | 'completion_tokens') =>
          records.reduce((total, record) => total + record[field], 0);
        expect(totalOf(metrics, 'gen_ai.client.inference.usage.input_tokens')).toBe(sum('prompt_tokens'));
        expect(totalOf(metrics, 'gen_ai.client.inference.usage.output_tokens')).toBe(
          sum('completion_tokens'),
        );
      }),
    );
  });

  test('count 0 of unknown modality where the engine reported no tokens', () => {
    const { prompt_tokens: _, completion_tokens: __, ...failed } = { ...STREAM, status: 502 };
    const metrics = collect([failed], 'latest');
    const [usage, ...others] = pointsOf(metrics, 'gen_ai.client.inference.usage.input_tokens');
    expect(usage).toMatchObject({ attributes: { 'gen_ai.token.modality': 'unknown' }, value: 0 });
    expect(others).toEqual([]);
    const [operation] = pointsOf(metrics, 'gen_ai.client.inference.operation.input_tokens');
    expect(operation?.value).toMatchObject({ sum: 0, count: 1 });
  });

  test('stay right with an engine that counts more parts than the whole', () => {
    const metrics = collect([{ ...STREAM, prompt_audio_tokens: 500 }], 'latest');
    const values = pointsOf(metrics, 'gen_ai.client.inference.usage.input_tokens').map(({ value }) => value);
    expect(values).toEqual([0, 500]);
  });
});

test('an engine cannot grow the metrics by the names of the models that it says have answered', () => {
  const records = Array.from({ length: 5_000 }, (_, index) => ({
    ...STREAM,
    response_model: `m\n"${index}"`,
  }));
  const points = pointsOf(collect(records), 'gen_ai.client.operation.duration');
  expect(points).toHaveLength(11);
  expect(totalOf(collect(records), 'gen_ai.client.operation.duration')).toBe(5_000);
});
