import { expect, test } from 'vitest';
import { hasFailed, type RequestOutcome, toOutcome } from '#otel/outcome';

type OutcomeFacts = Parameters<typeof toOutcome>[0];

test.each<[string, OutcomeFacts, RequestOutcome]>([
  ['a complete 2xx response', { status: 200 }, 'success'],
  ['a 5xx of the replica', { status: 500 }, 'error'],
  ['a 5xx of the gateway', { status: 502, error_type: 'upstream_failed' }, 'error'],
  [
    'a 5xx that the client did not read',
    { status: 500, truncated: true, error_type: 'client_closed' },
    'error',
  ],
  ['a response that broke off', { status: 200, truncated: true }, 'error'],
  ['a response that the gateway cut', { status: 200, truncated: true, error_type: 'shutting_down' }, 'error'],
  ['an error event in a stream', { status: 200, error_type: 'upstream_error' }, 'error'],
  ['a 4xx of the replica', { status: 404 }, 'client_error'],
  ['a 4xx of the gateway', { status: 400, error_type: 'invalid_json' }, 'client_error'],
  ['a client that left before the response', { status: 499, error_type: 'client_closed' }, 'canceled'],
  ['a client that left', { status: 200, truncated: true, error_type: 'client_closed' }, 'canceled'],
  ['a redirect', { status: 307 }, 'other'],
])('%s: %o is %s', (_what, facts, outcome) => {
  expect(toOutcome(facts)).toBe(outcome);
  expect(hasFailed(facts)).toBe(outcome === 'error' || outcome === 'client_error');
});
