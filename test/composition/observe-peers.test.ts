import { describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { createPeerObserver } from '../../src/composition/observe-peers.ts';
import type { Observation } from '../../src/verdict/observation.ts';
import { LEAST_RECORD } from '../otel/records.ts';

/** What a request shows whose record has these members. */
function observe(members: Partial<RequestRecord>): readonly Observation[] {
  const seen: Observation[] = [];
  const take = createPeerObserver({ observe: (each) => void seen.push(each) });
  take({ record: { ...LEAST_RECORD, replica: 'a', ...members }, encodedSpan: null });
  return seen;
}

describe('a request shows of its replica', () => {
  test.each([
    ['nothing wrong: a success', {}, 'ok'],
    ['an error: a status from 500', { status: 500 }, 'error'],
    ['an error: a response that broke off', { truncated: true, error_type: 'upstream_failed' }, 'error'],
    ['an error: an error event', { error_type: 'upstream_error' }, 'error'],
    ['an error: no answer in time', { status: 504, error_type: 'upstream_timeout' }, 'error'],
    ['nothing: what the client did wrong', { status: 400 }, 'unclear'],
    ['nothing: a client that left', { error_type: 'client_closed' }, 'unclear'],
    ['nothing: that none was reached', { status: 502, error_type: 'no_replica_reachable' }, 'unclear'],
    ['nothing: that the gateway was full', { status: 503, error_type: 'overloaded' }, 'unclear'],
    ['nothing wrong: a success after another replica was tried', { attempts: 2 }, 'ok'],
    ['an error: the last attempt failed too', { attempts: 2, status: 500 }, 'error'],
  ])('%s', (_title, members, outcome) => {
    expect(observe(members)).toMatchObject([{ replica: 'a', outcome }]);
  });

  test('nothing where none was chosen', () => {
    const { replica: _, ...record } = { ...LEAST_RECORD, replica: undefined };
    const seen: Observation[] = [];
    const take = createPeerObserver({ observe: (each) => void seen.push(each) });
    take({ record, encodedSpan: null });
    expect(seen).toEqual([]);
  });

  test('its own time only, without that in which the request waited for room', () => {
    expect(observe({ stream: true, ttft_ms: 50, e2e_ms: 90, queue_ms: 20 })).toMatchObject([
      { ttftMs: 30, e2eMs: 70 },
    ]);
  });
});
