import { expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { ObservationRing } from '../../../src/admin/observations/observation-ring.ts';

const recordOf = (replica: string, members: Partial<RequestRecord> = {}): RequestRecord => ({
  ...{
    request_id: '',
    trace_id: '',
    ts: '',
    endpoint: '/v1/completions',
    e2e_ms: 1,
    status: 200,
    stream: false,
  },
  replica,
  ...members,
});

function createRing() {
  const clock = { nowMs: 0 };
  return { clock, ring: new ObservationRing(() => clock.nowMs) };
}

test('nothing is kept before the first call, and from a minute after the last one on', () => {
  const { ring, clock } = createRing();
  ring.add(recordOf('a'));
  expect(ring.after(0)).toEqual({ observations: [], last: 0, missed: 0 });
  clock.nowMs = 60_000;
  ring.add(recordOf('b'));
  expect(ring.after(0)).toMatchObject({ observations: [{ replica: 'b' }], last: 1 });
  clock.nowMs = 120_001;
  ring.add(recordOf('c'));
  expect(ring.after(0)).toMatchObject({ observations: [], last: 1, missed: 1 });
  ring.add(recordOf('d'));
  expect(ring.after(1)).toMatchObject({ observations: [{ replica: 'd' }], last: 2, missed: 0 });
});

test('pages follow each other without a gap, and what is not kept any more is counted', () => {
  const { ring } = createRing();
  ring.after(0);
  for (let number = 1; number <= 140_000; number++) ring.add(recordOf('a', { e2e_ms: number }));
  let { last, missed, observations } = ring.after(0);
  const seen = missed + observations.length;
  expect(observations).toHaveLength(10_000);
  expect(observations[0]?.e2eMs).toBe(missed + 1);
  expect(missed).toBeGreaterThan(0);
  expect(140_000 - missed).toBeGreaterThanOrEqual(65_536);
  let count = seen;
  while (observations.length > 0) {
    ({ last, missed, observations } = ring.after(last));
    expect(missed).toBe(0);
    count += observations.length;
  }
  expect([count, last]).toEqual([140_000, 140_000]);
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
  ring.after(0);
  ring.add(recordOf('a', members));
  expect(ring.after(0).observations).toMatchObject([{ outcome }]);
});

test('the failed attempts of a request are those of their replicas, whoever answered', () => {
  const { ring } = createRing();
  ring.after(0);
  const failed = (replica: string, failure: string, status: number | null = null) => ({
    ...{ replica, failure, status },
    ...{ duration_ms: 20, after_ms: 20 },
  });
  const failed_attempts = [
    failed('b', 'status_retried', 503),
    failed('c', 'not_connected'),
    failed('d', 'loading', 503),
  ];
  ring.add(recordOf('a', { e2e_ms: 100, attempts: 4, failed_attempts }));
  const { observations, last } = ring.after(0);
  expect(observations).toMatchObject([
    { replica: 'b', outcome: 'error', e2eMs: 20 },
    { replica: 'c', outcome: 'error', e2eMs: 20 },
    { replica: 'a', outcome: 'ok', e2eMs: 40 },
  ]);
  expect(last).toBe(3);
});

test('tokens are estimated from characters where the engine counts none', () => {
  const { ring } = createRing();
  ring.after(0);
  ring.add(recordOf('a', { prompt_chars: 400 }));
  ring.add(recordOf('a', { prompt_chars: 400, prompt_tokens: 90 }));
  expect(ring.after(0).observations).toMatchObject([{ promptTokens: 100 }, { promptTokens: 90 }]);
});
