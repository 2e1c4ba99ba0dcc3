import { describe, expect, test } from 'vitest';
import { makeSums, makeUsage } from '#testkit/dashboard/made-history.ts';
import { makeRecord } from '#testkit/dashboard/made-overview.ts';
import { explain } from '../../../../../src/admin/dashboard/page/records/explain.js';
import { toLikeQuery, toUsual } from '../../../../../src/admin/dashboard/page/records/like-requests.js';

type Changes = Parameters<typeof makeRecord>[1];

/** Median 1.24 s, first token 118 ms, 128 tokens of 10 ms each. */
const USUAL = toUsual(makeUsage({ total: makeSums({ e2e_ms: { mean: 1_410, p50: 1_240, p95: 3_480 } }) }));
const tell = (changes: Changes, usual = USUAL) => explain(makeRecord(1, changes), usual);
const { ttft_ms: _, ...WHOLE } = makeRecord(1, { stream: false });

describe('a request that was slow', () => {
  test('waited for a replica', () => {
    expect(tell({ queue_ms: 2_100, ttft_ms: 2_230, e2e_ms: 3_400 })).toBe(
      'It waited 2.10 s for a free replica.',
    );
  });

  test('had a replica that failed first', () => {
    const failed = {
      replica: 'b',
      failure: 'status_retried',
      status: 503,
      after_ms: 2_000,
      duration_ms: 2_000,
    };
    expect(tell({ attempts: 2, failed_attempts: [failed], ttft_ms: 2_120, e2e_ms: 3_300 })).toBe(
      'The first replica, b, answered with 503, which took 2.00 s; then a answered.',
    );
    expect(
      tell({
        attempts: 3,
        failed_attempts: [failed, { ...failed, after_ms: 4_000 }],
        ttft_ms: 4_120,
        e2e_ms: 5_300,
      }),
    ).toBe('2 attempts failed, which took 4.00 s; then a answered.');
  });

  test('had no token for long, and a long prompt', () => {
    expect(tell({ ttft_ms: 2_360, e2e_ms: 3_600 })).toBe(
      'The first token took 20.0 times as long as usual: 2.36 s instead of 118 ms.',
    );
    expect(tell({ ttft_ms: 2_360, e2e_ms: 3_600, prompt_tokens: 12_000 })).toBe(
      'The first token took 20.0 times as long as usual: 2.36 s instead of 118 ms, with a prompt of 12,000 tokens where 312 are usual.',
    );
  });

  test('was silent in the stream', () => {
    expect(tell({ silence_ms: 9_000, silence_after_ms: 500, e2e_ms: 10_400 })).toBe(
      'There was a silence of 9.00 s in the stream.',
    );
  });

  test('has a long answer at the usual pace', () => {
    expect(tell({ completion_tokens: 4_000, e2e_ms: 40_120 })).toBe(
      'It is a long answer: 4,000 tokens, where 128 are usual.',
    );
  });

  test('has tokens that came slowly', () => {
    expect(tell({ completion_tokens: 128, e2e_ms: 6_000 })).toBe(
      'Its tokens came slowly: one in 46 ms instead of one in 10 ms.',
    );
  });

  test('was so for no single reason', () => {
    expect(tell({ ttft_ms: 170, completion_tokens: 150, e2e_ms: 2_000 })).toMatch(
      /^It was slower than usual in all of its parts: 2\.00 s/,
    );
  });

  test('is told what it spent most of its time with, where nothing is known of others', () => {
    expect(tell({ ttft_ms: 100, e2e_ms: 3_000 }, null)).toBe('Most of its 3.00 s was this: stream, 2.90 s.');
    expect(explain({ ...WHOLE, e2e_ms: 50 }, null)).toBe('Most of its 50 ms was this: answer of a, 50 ms.');
    expect(tell({ queue_ms: 2_100, ttft_ms: 2_230, e2e_ms: 3_400 }, null)).toBe(
      'It waited 2.10 s for a free replica.',
    );
  });
});

test.each([
  [1_300, /^It took as long as usual: 1\.30 s, where half of like requests took up to 1\.24 s\.$/],
  [400, /^It was faster than usual: 400 ms, where half of like requests took more than 1\.24 s\.$/],
])('a request of %i ms was not slow', (e2e_ms, sentence) => {
  expect(tell({ e2e_ms, ttft_ms: 100 })).toMatch(sentence);
});

describe('a request that failed', () => {
  test('got no replica', () => {
    const { replica: __, ...refused } = {
      ...WHOLE,
      status: 503,
      error_type: 'no_capacity',
      e2e_ms: 30_001,
      queue_ms: 30_000,
    };
    expect(explain(refused, USUAL)).toBe('It waited 30.0 s for a free replica and got none.');
  });

  test('had only attempts that failed', () => {
    const attempt = { replica: 'b', failure: 'not_connected', status: null, after_ms: 2, duration_ms: 1 };
    const failed = { ...WHOLE, status: 502, error_type: 'upstream_unreachable', attempts: 1, e2e_ms: 3 };
    expect(explain({ ...failed, failed_attempts: [attempt] }, USUAL)).toBe(
      'It failed after 3.0 ms: b could not be connected to.',
    );
  });

  test('broke off in the middle of the stream', () => {
    expect(tell({ error_type: 'upstream_failed', truncated: true, e2e_ms: 900 })).toBe(
      'It failed with 200 upstream_failed after 900 ms, in the middle of the stream.',
    );
  });

  test('was refused by a limit', () => {
    const refused = { error_type: 'rate_limit_exceeded', refused_by: 'tenant.max_inflight' };
    expect(explain({ ...WHOLE, status: 429, e2e_ms: 1, ...refused }, USUAL)).toBe(
      'It was refused with 429 rate_limit_exceeded by tenant.max_inflight after 1.0 ms.',
    );
  });

  test('was refused', () => {
    expect(explain({ ...WHOLE, status: 404, error_type: 'model_not_found', e2e_ms: 1 }, USUAL)).toBe(
      'It was refused with 404 model_not_found after 1.0 ms.',
    );
  });
});

test('a client that left did so while it waited', () => {
  const { replica: __, ...waiting } = {
    ...WHOLE,
    status: 499,
    error_type: 'client_closed',
    queue_ms: 4_000,
    e2e_ms: 4_000,
  };
  expect(explain(waiting, USUAL)).toBe('The client left after 4.00 s, while it waited for a free replica.');
});

describe('like requests', () => {
  test('are those of the same model and endpoint in its hour', () => {
    expect(toLikeQuery(makeRecord(1, { ts: '2026-11-21T12:59:59.999Z' }))).toEqual({
      since: '2026-11-21T12:00:00.000Z',
      until: '2026-11-21T13:00:00.000Z',
      model: 'm',
      endpoint: '/v1/chat/completions',
    });
  });

  test('are none of one without a model, or that was refused', () => {
    const { model: __, ...nameless } = makeRecord(1);
    expect(toLikeQuery(nameless)).toBeNull();
    expect(toLikeQuery(makeRecord(1, { status: 429, error_type: 'rate_limited' }))).toBeNull();
  });

  test('say nothing if few succeeded', () => {
    expect(toUsual(makeUsage({ total: makeSums({ requests: 4 }) }))).toBeNull();
    expect(toUsual(makeUsage({ total: makeSums({ requests: 20, client_errors: 16 }) }))).toBeNull();
    const total = makeSums({ requests: 20, client_errors: 10, canceled: 2, errors: 1 });
    expect(toUsual(makeUsage({ total }))).toMatchObject({ requests: 7 });
  });

  test('without tokens have no pace', () => {
    const total = makeSums({ completion_tokens: 0, prompt_tokens: 0 });
    expect(toUsual(makeUsage({ total }))).toMatchObject({ tokens: null, tokenMs: null, promptTokens: null });
  });
});
