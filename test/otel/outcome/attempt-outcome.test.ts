import { describe, expect, test } from 'vitest';
import {
  type AttemptOutcome,
  toFailedAttemptOutcome,
  toLastAttemptOutcome,
  toMsBeforeLastAttempt,
} from '#otel/outcome';
import type { FailedAttempt, RequestRecord } from '#otel/record/registry';

const failedAttempt = (failure: string, status: number | null = null): FailedAttempt => ({
  replica: 'b',
  failure,
  status,
  duration_ms: 30,
  after_ms: 40,
});

test.each<[string, string, number | null, AttemptOutcome]>([
  ['a connection that was refused', 'not_connected', null, 'not_connected'],
  ['a llama.cpp that loads its model', 'loading', 503, 'loading'],
  ['a 503 that was retried', 'status_retried', 503, 'error'],
  ['a 429 that was retried', 'status_retried', 429, 'client_error'],
  ['a response that broke off before its head', 'upstream_failed', null, 'error'],
  ['no answer in time', 'upstream_timeout', null, 'error'],
  ['a kept connection that was dead', 'reset_on_reuse', null, 'repeated'],
  ['an engine that does not know include_usage', 'usage_refused', 400, 'repeated'],
  ['a form that did not come to its end', 'request_timeout', null, 'canceled'],
])('%s is told from what became of other failed attempts', (_what, failure, status, outcome) => {
  expect(toFailedAttemptOutcome(failedAttempt(failure, status))).toBe(outcome);
});

describe('the last attempt of a request', () => {
  const outcomeOf = (record: Partial<RequestRecord>) =>
    toLastAttemptOutcome({ replica: 'a', status: 200, ...record });

  test.each<[string, Partial<RequestRecord>, AttemptOutcome]>([
    [
      'a success after a failure',
      { attempts: 2, failed_attempts: [failedAttempt('not_connected')] },
      'success',
    ],
    ['a 5xx of the replica', { status: 500 }, 'error'],
    [
      'a 5xx that the client did not read',
      { status: 500, truncated: true, error_type: 'client_closed' },
      'error',
    ],
    ['a stream that broke off', { truncated: true, error_type: 'upstream_failed' }, 'error'],
    ['a 4xx of the replica', { status: 422 }, 'client_error'],
    ['a client that left', { status: 499, error_type: 'client_closed' }, 'canceled'],
    ['a stream that a shutdown ended', { truncated: true, error_type: 'shutting_down' }, 'canceled'],
    ['a form of the client that was too large', { status: 413, error_type: 'request_too_large' }, 'canceled'],
    ['a redirect', { status: 307 }, 'other'],
  ])('is told from the record: %s', (_what, record, outcome) => {
    expect(outcomeOf(record)).toBe(outcome);
  });

  test('is not counted twice where it is among those that failed, whatever the client got', () => {
    const failed_attempts = [failedAttempt('status_retried', 503), failedAttempt('status_retried', 503)];
    expect(outcomeOf({ status: 503, attempts: 2, failed_attempts })).toBeNull();
    expect(
      outcomeOf({ status: 502, error_type: 'no_replica_reachable', attempts: 2, failed_attempts }),
    ).toBeNull();
    expect(outcomeOf({ status: 499, error_type: 'client_closed', attempts: 2, failed_attempts })).toBeNull();
  });

  test('is none where no replica was tried', () => {
    expect(toLastAttemptOutcome({ status: 404, error_type: 'model_not_found' })).toBeNull();
  });

  test('has no part in the time of waiting and of the attempts before', () => {
    const failed_attempts = [failedAttempt('not_connected'), failedAttempt('status_retried', 503)];
    expect(toMsBeforeLastAttempt({ queue_ms: 5, failed_attempts })).toBe(65);
    expect(toMsBeforeLastAttempt({})).toBe(0);
  });
});
