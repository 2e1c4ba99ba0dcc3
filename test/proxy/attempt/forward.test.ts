import { describe, expect, test } from 'vitest';
import { decideNext } from '../../../src/proxy/attempt/forward.ts';

const FIRST = { onFreshConnection: false, withUsage: true, mayRetryStatus: false };

describe('what follows an attempt', () => {
  test.each([
    ['a response that was relayed', { kind: 'relayed', statusCode: 500 }, 'done'],
    ['a client that left', { kind: 'abandoned' }, 'done'],
    ['a replica that was drained meanwhile', { kind: 'drained' }, 'next_replica'],
    ['a refused connection', { kind: 'not_connected', cause: null }, 'next_replica'],
    ['a retried status', { kind: 'status_retried', statusCode: 503, relayAnswer() {} }, 'next_replica'],
    ['a reused connection that was reset', { kind: 'reset_on_reuse', cause: null }, 'repeat_on_fresh'],
    ['a refusal of our stream options', { kind: 'usage_refused', statusCode: 400 }, 'repeat_without_usage'],
    ['a fresh connection that was reset', { kind: 'failed', code: 'upstream_failed', cause: null }, 'fail'],
    ['a time-out', { kind: 'failed', code: 'upstream_timeout', cause: null }, 'fail'],
  ] as const)('%s', (_name, outcome, next) => {
    expect(decideNext(outcome, FIRST)).toBe(next);
  });

  test('nothing is repeated twice for the same reason', () => {
    const onFresh = { ...FIRST, onFreshConnection: true };
    const withoutUsage = { ...FIRST, withUsage: false };
    expect(decideNext({ kind: 'reset_on_reuse', cause: null }, onFresh)).toBe('fail');
    expect(decideNext({ kind: 'usage_refused', statusCode: 400 }, withoutUsage)).toBe('fail');
  });
});
