import { describe, expect, test } from 'vitest';
import type { FailedAttempt, RequestRecord } from '#otel/record/registry';
import type { Observation } from '#verdict/blocks';
import { RequestRing } from '../../../src/comparisons/requests/request-ring.ts';

const recordOf = (replica: string, members: Partial<RequestRecord> = {}): RequestRecord => ({
  request_id: '',
  trace_id: '',
  ts: '',
  endpoint: '/v1/completions',
  e2e_ms: 1,
  status: 200,
  stream: false,
  replica,
  ...members,
});

function createRing(onRamp: readonly string[] = []) {
  const clock = { nowMs: 0 };
  const ring = new RequestRing({
    isWarm: (name) => !onRamp.includes(name),
    isOfPresent: ({ replica, e2eMs }) => replica !== 'moved' || e2eMs < 1_000,
    nowMs: () => clock.nowMs,
  });
  return { clock, ring };
}

const allOf = (ring: RequestRing): readonly Observation[] =>
  Array.from({ length: ring.end - ring.first }, (_, index) => ring.observationOf(ring.first + index));

test('what a server ends that had the name before says nothing of the present one', () => {
  const { ring } = createRing();
  for (const replica of ['a', 'moved'])
    for (const e2e_ms of [999, 1_000]) ring.add(recordOf(replica, { e2e_ms }));
  const kept = allOf(ring).map(({ replica, e2eMs }) => [replica, e2eMs]);
  expect(kept).toEqual([
    ['a', 999],
    ['a', 1_000],
    ['moved', 999],
  ]);
});

test('what was put in comes out', () => {
  const { ring, clock } = createRing(['cold']);
  clock.nowMs = 5;
  ring.add(
    recordOf('a', {
      model: 'm',
      stream: true,
      prompt_tokens: 100,
      cached_tokens: 25,
      completion_tokens: 7,
      max_tokens: 16,
      ttft_ms: 12.5,
      gap_p50_ms: 0.25,
      e2e_ms: 80,
      finish_reasons: ['length', 'stop'],
    }),
  );
  ring.add(recordOf('cold'));
  expect(allOf(ring)).toEqual([
    {
      replica: 'a',
      model: 'm',
      endpoint: '/v1/completions',
      stream: true,
      promptTokens: 100,
      cachedTokens: 25,
      completionTokens: 7,
      maxTokens: 16,
      ttftMs: 12.5,
      gapMs: 0.25,
      e2eMs: 80,
      outcome: 'ok',
      finish: 'length',
    },
    {
      replica: 'cold',
      model: null,
      endpoint: '/v1/completions',
      stream: false,
      promptTokens: null,
      cachedTokens: null,
      completionTokens: null,
      maxTokens: null,
      ttftMs: null,
      gapMs: null,
      e2eMs: 1,
      outcome: 'ok',
      finish: null,
    },
  ]);
  expect([ring.isWarmOf(0), ring.isWarmOf(1)]).toEqual([true, false]);
  expect([ring.endedMsOf(0), ring.beganMsOf(0)]).toEqual([5, -75]);
});

test('the latest 262,144 requests are kept at least, and it says since when all are', () => {
  const { ring, clock } = createRing();
  for (let ms = 0; ms < 300_000; ms++) {
    clock.nowMs = ms;
    ring.add(recordOf('a', { e2e_ms: ms % 1_000 }));
  }
  expect(ring.end).toBe(300_000);
  expect(ring.end - ring.first).toBeGreaterThanOrEqual(262_144);
  expect(ring.end - ring.first).toBeLessThan(280_000);
  expect(ring.completeFromMs).toBe(ring.first);
  expect(ring.numberSince(200_000)).toBe(200_000);
  expect(ring.numberSince(199_999.5)).toBe(200_000);
  expect(ring.numberSince(0)).toBe(ring.first);
  expect(ring.numberSince(400_000)).toBe(300_000);
  expect(ring.observationOf(299_999).e2eMs).toBe(999);
});

test('clients that send a new name of a model each time take bounded memory, and cost no request', () => {
  const { ring } = createRing();
  for (let index = 0; index < 9_000; index++) ring.add(recordOf('a', { model: `m-${index}` }));
  expect(new Set(allOf(ring).map(({ model }) => model)).size).toBeLessThanOrEqual(2 * 255);
  expect(allOf(ring)[300]?.model).toBe('other');
  expect(ring.end).toBe(9_000);
});

test.each<[string, Partial<RequestRecord>, string]>([
  ['an answer', {}, 'ok'],
  ['a 5xx status', { status: 500 }, 'error'],
  ['a stream that broke off', { truncated: true }, 'error'],
  ['a status that only this replica may send', { status: 400 }, 'error'],
  ['a client that left', { status: 499 }, 'unclear'],
  ['a client that left in the middle', { error_type: 'client_closed' }, 'unclear'],
])('%s counts as it says', (_title, members, outcome) => {
  const { ring } = createRing();
  ring.add(recordOf('a', members));
  expect(allOf(ring)).toMatchObject([{ outcome }]);
});

test('tokens are estimated from characters where the engine counts none', () => {
  const { ring } = createRing();
  ring.add(recordOf('a', { prompt_chars: 400 }));
  ring.add(recordOf('a', { prompt_chars: 400, prompt_tokens: 90 }));
  expect(allOf(ring)).toMatchObject([{ promptTokens: 100 }, { promptTokens: 90 }]);
});

describe('a request that several replicas were tried for', () => {
  const failed = (replica: string, failure: string, status: number | null = null): FailedAttempt => ({
    replica,
    failure,
    status,
    duration_ms: 30,
    after_ms: 30,
  });

  test('is an error of each that failed it, and costs the last one only its own time', () => {
    const { ring } = createRing();
    const attempts = [failed('bad', 'status_retried', 503), failed('away', 'not_connected')];
    ring.add(
      recordOf('good', {
        stream: true,
        ttft_ms: 100,
        e2e_ms: 200,
        queue_ms: 10,
        attempts: 3,
        failed_attempts: attempts,
      }),
    );
    expect(allOf(ring)).toMatchObject([
      { replica: 'bad', outcome: 'error', ttftMs: null, e2eMs: 30 },
      { replica: 'away', outcome: 'error' },
      { replica: 'good', outcome: 'ok', ttftMs: 30, e2eMs: 130 },
    ]);
  });

  test('is no error of one that was only asked twice, or is loading', () => {
    const { ring } = createRing();
    const attempts = [failed('a', 'reset_on_reuse'), failed('b', 'loading', 503)];
    ring.add(recordOf('a', { attempts: 3, failed_attempts: attempts }));
    expect(allOf(ring)).toMatchObject([{ replica: 'a', outcome: 'ok' }]);
  });

  test('counts once for the last one if that failed it too', () => {
    const { ring } = createRing();
    const attempts = [failed('a', 'not_connected')];
    ring.add(recordOf('a', { status: 502, attempts: 1, failed_attempts: attempts }));
    expect(allOf(ring)).toMatchObject([{ replica: 'a', outcome: 'error' }]);
  });
});
