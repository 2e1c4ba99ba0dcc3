import type { Attributes } from '@opentelemetry/api';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toErrorType } from '#otel/outcome';
import { RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { anyCharacter } from '#testkit/any-character.ts';
import { FULL_RECORD, LEAST_RECORD, toAttributes } from '#testkit/records/records.ts';
import { isDoubleName } from '../../../otel/record/attributes.ts';

const HTTP = { scheme: 'https', serverAddress: 'gateway.example', serverPort: 8443 } as const;

describe('the attributes of a record', () => {
  test('include every field under gateway, and the same facts under the conventional names', () => {
    expect(toAttributes(FULL_RECORD, HTTP)).toEqual({
      'gateway.request_id': FULL_RECORD.request_id,
      'gateway.route.candidates': 3,
      'gateway.route.prefix_blocks': 4,
      'gateway.route.prefix_miss': 'elsewhere',
      'gateway.route.prefix_share': 1,
      'gateway.route.reason': 'prefix',
      'gateway.route.ruled_out.at_limit': 2,
      'gateway.route.ruled_out.drained': 1,
      'gateway.trace_id': FULL_RECORD.trace_id,
      'gateway.ts': FULL_RECORD.ts,
      'gateway.replica': 'vllm-a',
      'gateway.model': 'llama-3.3-70b',
      'gateway.endpoint': '/v1/chat/completions',
      'gateway.tenant': 'acme',
      'gateway.feature': 'søk',
      'gateway.prompt_tokens': 120,
      'gateway.completion_tokens': 45,
      'gateway.cached_tokens': 0,
      'gateway.ttft_ms': 31,
      'gateway.e2e_ms': 85,
      'gateway.gap_p50_ms': 12,
      'gateway.gap_p95_ms': 19.25,
      'gateway.status': 200,
      'gateway.stream': true,
      'gateway.max_tokens': 256,
      'gateway.prompt_chars': 480,
      'gateway.prefix_hashes': ['00112233aabbccdd', 'ffeeddccbbaa0011'],
      'gateway.error_type': 'upstream_failed',
      'gateway.refused_by': 'tenant.max_inflight',
      'gateway.finish_reasons': ['stop', 'length'],
      'gateway.reasoning_tokens': 7,
      'gateway.prompt_audio_tokens': 229,
      'gateway.prompt_image_tokens': 1196,
      'gateway.completion_audio_tokens': 64,
      'gateway.tokens_per_second': 85.25,
      'gateway.silence_ms': 9050.25,
      'gateway.silence_after_ms': 1310.5,
      'gateway.usage_source': 'final',
      'gateway.gpu_seconds': 1.875,
      'gateway.cost': 4,
      'gateway.currency': 'EUR',
      'gateway.background_ms': 61250.5,
      'gateway.background_end': 'ended',
      'gateway.cache_creation_tokens': 32,
      'gateway.model_requested': 'gpt-4o',
      'gateway.request_bytes': 1_048_576,
      'gateway.audio_seconds': 12.5,
      'gateway.response_id': 'chatcmpl-8b855979c5163ef4',
      'gateway.response_model': 'llama-3.3-70b-fp8',
      'gateway.previous_response_id': 'resp_a52bf61b06981d50',
      'gateway.conversation_id': 'session-42',
      'gateway.reasoning_level': 'low',
      'gateway.queue_ms': 20,
      'gateway.attempts': 2,
      'gateway.truncated': true,
      'gateway.client_request_id': 'client-1',
      'gateway.client': 'search-team',
      'gateway.client_subject': 'CN=batch-jobs,O=Example',
      'gateway.instance': FULL_RECORD.instance,
      'gateway.seq': FULL_RECORD.seq,
      'gateway.timings.queue_time_ms': 4,
      'gateway.timings.prompt_ms': 20,
      'gateway.timings.predicted_ms': 2500,
      'gateway.timings.predicted_per_second': 91.5,
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'url.path': '/v1/chat/completions',
      'url.scheme': 'https',
      'server.address': 'gateway.example',
      'server.port': 8443,
      'error.type': 'upstream_failed',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'llama-3.3-70b',
      'gen_ai.request.max_tokens': 256,
      'gen_ai.request.stream': true,
      'gen_ai.conversation.id': 'session-42',
      'gen_ai.response.id': 'chatcmpl-8b855979c5163ef4',
      'gen_ai.response.model': 'llama-3.3-70b-fp8',
      'gen_ai.response.finish_reasons': ['stop', 'length'],
      'gen_ai.usage.input_tokens': 120,
      'gen_ai.usage.output_tokens': 45,
      'gen_ai.usage.cache_read.input_tokens': 0,
      'gen_ai.usage.cache_creation.input_tokens': 32,
      'gen_ai.usage.cost': 4,
      'gen_ai.latency.time_in_queue': 0.004,
      'gen_ai.latency.time_in_model_prefill': 0.02,
      'gen_ai.latency.time_in_model_decode': 2.5,
    });
  });

  test('omit unknown values', () => {
    expect(toAttributes(LEAST_RECORD, { scheme: 'http' })).toEqual({
      'gateway.request_id': LEAST_RECORD.request_id,
      'gateway.trace_id': LEAST_RECORD.trace_id,
      'gateway.ts': LEAST_RECORD.ts,
      'gateway.endpoint': '/v1/chat/completions',
      'gateway.e2e_ms': 85,
      'gateway.status': 200,
      'gateway.stream': false,
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'url.path': '/v1/chat/completions',
      'url.scheme': 'http',
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
    });
  });

  test.each([
    ['/v1/chat/completions', 'chat'],
    ['/v1/completions', 'text_completion'],
    ['/v1/embeddings', 'embeddings'],
  ])('name the operation of %s %s', (endpoint, operation) => {
    expect(toAttributes({ ...LEAST_RECORD, endpoint }, HTTP)['gen_ai.operation.name']).toBe(operation);
  });

  test('contain nothing that makes a collector reject the batch, whatever is in the record', () => {
    const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(1e300, 2 ** 53, -0));
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('\ud800', 'a'.repeat(5000), `${'a'.repeat(1023)}😀`),
    );
    const byType = {
      string: text,
      int: number,
      double: number,
      bool: fc.boolean(),
      strings: fc.array(text),
      doubles: fc.dictionary(text, number),
    };
    const fields = Object.fromEntries(
      Object.entries(RECORD_FIELDS).map(([field, { type }]) => [field, byType[type]]),
    );
    fc.assert(
      fc.property(fc.record(fields), (record) => {
        const attributes = toAttributes(record as unknown as RequestRecord, HTTP);
        for (const [name, value] of Object.entries(attributes)) {
          for (const item of Array.isArray(value) ? value : [value]) {
            if (typeof item === 'string') expect(item.isWellFormed() && item.length <= 1024).toBe(true);
            else if (typeof item !== 'number') expect(item).toBeTypeOf('boolean');
            else if (isDoubleName(name)) expect(item).toSatisfy(Number.isFinite);
            else expect(item).toSatisfy(Number.isSafeInteger);
          }
        }
      }),
    );
  });

  test.each<[string, Partial<RequestRecord>, Attributes]>([
    ['lone surrogates are U+FFFD', { model: 'a\ud800b\udc00' }, { 'gateway.model': 'a\ufffdb\ufffd' }],
    [
      'a long text is cut, and half a pair at its end is U+FFFD',
      { error_type: `${'a'.repeat(1023)}😀` },
      { 'gateway.error_type': `${'a'.repeat(1023)}\ufffd` },
    ],
    ['an empty text is a text', { tenant: '' }, { 'gateway.tenant': '' }],
    ['an empty list is a list', { prefix_hashes: [] }, { 'gateway.prefix_hashes': [] }],
    [
      'integers are exact up to 2^53',
      { prompt_tokens: Number.MAX_SAFE_INTEGER, cached_tokens: Number.MIN_SAFE_INTEGER },
      {
        'gateway.prompt_tokens': Number.MAX_SAFE_INTEGER,
        'gen_ai.usage.cache_read.input_tokens': Number.MIN_SAFE_INTEGER,
      },
    ],
    [
      'doubles are exact',
      { ttft_ms: Number.MIN_VALUE, gap_p50_ms: Number.MAX_VALUE, timings: { __proto: 0.1 } },
      {
        'gateway.ttft_ms': Number.MIN_VALUE,
        'gateway.gap_p50_ms': Number.MAX_VALUE,
        'gateway.timings.__proto': 0.1,
      },
    ],
  ])('%s', (_what, values, expected) => {
    expect(toAttributes({ ...LEAST_RECORD, ...values }, HTTP)).toMatchObject(expected);
  });

  test('are limited to 4,096 items of a list and 32 timings', () => {
    const attributes = toAttributes(
      {
        ...LEAST_RECORD,
        prefix_hashes: new Array<string>(5000).fill('00112233aabbccdd'),
        timings: Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`t${index}`, index])),
      },
      HTTP,
    );
    expect(attributes['gateway.prefix_hashes']).toHaveLength(4096);
    expect(Object.keys(attributes).filter((name) => name.startsWith('gateway.timings.'))).toHaveLength(32);
  });
});

describe('the error type of a request', () => {
  test.each<{ ending: string; record: Partial<RequestRecord>; errorType: string | undefined }>([
    { ending: 'a success', record: { status: 200 }, errorType: undefined },
    {
      ending: 'the gateway’s own 404',
      record: { status: 404, error_type: 'model_not_found' },
      errorType: undefined,
    },
    { ending: 'a relayed 429', record: { status: 429 }, errorType: undefined },
    {
      ending: 'a client that disconnected',
      record: { status: 499, error_type: 'client_closed' },
      errorType: undefined,
    },
    { ending: 'a relayed 500', record: { status: 500 }, errorType: '500' },
    {
      ending: 'the gateway’s own 502',
      record: { status: 502, error_type: 'no_replica_reachable' },
      errorType: 'no_replica_reachable',
    },
    {
      ending: 'an error event',
      record: { status: 200, error_type: 'upstream_error' },
      errorType: 'upstream_error',
    },
    {
      ending: 'a truncated response',
      record: { status: 200, error_type: 'upstream_failed', truncated: true },
      errorType: 'upstream_failed',
    },
    {
      ending: 'a truncated response for an unknown reason',
      record: { status: 200, truncated: true },
      errorType: '_OTHER',
    },
  ])('$ending: $errorType', ({ record, errorType }) => {
    const complete = { ...LEAST_RECORD, ...record };
    expect(toErrorType(complete)).toBe(errorType);
    expect(toAttributes(complete, HTTP)['error.type']).toBe(errorType);
  });
});
