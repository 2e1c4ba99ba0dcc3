import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import type { Observation } from '#verdict/blocks';
import { createPeerObserver } from '../../../src/gateway/composition/observe-peers.ts';

/** What a request shows whose record has these members, after these attempts failed. */
function observe(
  members: Partial<RequestRecord>,
  failedAttempts: readonly FailedAttempt[] = [],
): readonly Observation[] {
  const seen: Observation[] = [];
  const take = createPeerObserver({ observe: (each) => void seen.push(each) }, () => true);
  const failed_attempts = failedAttempts.map(toFailedAttempt);
  take({ record: { ...LEAST_RECORD, replica: 'a', failed_attempts, ...members }, encodedSpan: null });
  return seen;
}

interface FailedAttempt {
  readonly replica: string;
  readonly durationMs: number;
  readonly status?: number;
  readonly failure?: string;
}

function toFailedAttempt({ replica, durationMs, status, failure = 'status_retried' }: FailedAttempt) {
  return { replica, failure, status: status ?? null, duration_ms: durationMs, after_ms: durationMs };
}

describe('a request shows of its replica', () => {
  test.each([
    ['nothing wrong: a success', {}, 'ok'],
    ['an error: a status from 500', { status: 500 }, 'error'],
    ['an error: a response that broke off', { truncated: true, error_type: 'upstream_failed' }, 'error'],
    ['an error: an error event', { error_type: 'upstream_error' }, 'error'],
    ['an error: no answer in time', { status: 504, error_type: 'upstream_timeout', e2e_ms: 15_000 }, 'error'],
    [
      'nothing: no answer in so long a time that the fault may be over',
      { status: 504, error_type: 'upstream_timeout', e2e_ms: 15_001 },
      'unclear',
    ],
    [
      'nothing: a stream that a time-out ended was judged when it fell silent',
      { stream: true, truncated: true, error_type: 'upstream_timeout', e2e_ms: 90 },
      'unclear',
    ],
    ['nothing: what the client did wrong', { status: 400 }, 'unclear'],
    ['nothing: a client that left', { error_type: 'client_closed' }, 'unclear'],
    ['nothing: that none was reached', { status: 502, error_type: 'no_replica_reachable' }, 'unclear'],
    ['nothing: that the gateway was full', { status: 503, error_type: 'overloaded' }, 'unclear'],
    ['nothing wrong: a success after another replica was tried', { attempts: 2 }, 'ok'],
    ['an error: the last attempt failed too', { attempts: 2, status: 500 }, 'error'],
  ])('%s', (_title, members, outcome) => {
    expect(observe(members)).toMatchObject([{ replica: 'a', outcome }]);
  });

  test.each([
    [15_000, 'error'],
    [15_001, 'unclear'],
  ])('of an attempt without an answer after %i ms, as far as the fault may last', (durationMs, outcome) => {
    const failed = { replica: 'a', durationMs, failure: 'upstream_timeout' };
    const record = { status: 504, error_type: 'upstream_timeout', attempts: 1, e2e_ms: 20_000 };
    expect(observe(record, [failed])).toMatchObject([{ replica: 'a', e2eMs: durationMs, outcome }]);
  });

  test('nothing where none was chosen', () => {
    const { replica: _, ...record } = { ...LEAST_RECORD, replica: undefined };
    const seen: Observation[] = [];
    const take = createPeerObserver({ observe: (each) => void seen.push(each) }, () => true);
    take({ record, encodedSpan: null });
    expect(seen).toEqual([]);
  });

  test('its own time only, without that in which the request waited for room', () => {
    expect(observe({ stream: true, ttft_ms: 50, e2e_ms: 90, queue_ms: 20 })).toMatchObject([
      { ttftMs: 30, e2eMs: 70 },
    ]);
  });

  test('its own time only, without that of the attempts before at other replicas', () => {
    const record = { stream: true, ttft_ms: 500, e2e_ms: 900, queue_ms: 20, attempts: 3 };
    const failed = [
      { replica: 'b', durationMs: 300, failure: 'not_connected' },
      { replica: 'c', durationMs: 50, failure: 'loading' },
    ];
    expect(observe(record, failed)).toMatchObject([{ replica: 'a', ttftMs: 130, e2eMs: 530 }]);
  });

  test('no time below zero, where clocks differ by less than the time of an attempt', () => {
    const record = { stream: true, ttft_ms: 50, e2e_ms: 60, attempts: 2 };
    expect(observe(record, [{ replica: 'b', durationMs: 70, failure: 'not_connected' }])).toMatchObject([
      { ttftMs: 0, e2eMs: 0 },
    ]);
  });
});

const outcomesOf = (observations: readonly Observation[]) =>
  observations.map(({ replica, outcome }) => `${replica} ${outcome}`);

test('a failed attempt is an error of its replica if that answered with a status from 500, or did not answer in time', () => {
  const failed = [
    { replica: 'b', durationMs: 5, status: 503 },
    { replica: 'c', durationMs: 5, status: 429 },
    { replica: 'd', durationMs: 5, failure: 'not_connected' },
    { replica: 'e', durationMs: 5, failure: 'reset_on_reuse' },
  ];
  expect(outcomesOf(observe({ attempts: 5 }, failed))).toEqual(['b error', 'c unclear', 'a ok']);
  const silent = [{ replica: 'a', durationMs: 5, failure: 'upstream_timeout' }];
  const record = { attempts: 1, status: 504, error_type: 'upstream_timeout' };
  expect(outcomesOf(observe(record, silent))).toEqual(['a error']);
});

test('an answer that the client got because no other replica took the request counts once', () => {
  const failed = [
    { replica: 'b', durationMs: 5, status: 503 },
    { replica: 'a', durationMs: 5, status: 503 },
  ];
  expect(outcomesOf(observe({ attempts: 2, status: 503 }, failed))).toEqual(['b error', 'a error']);
});
