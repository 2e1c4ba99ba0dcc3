import { expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import type { ReplicaControl } from '#replicas/control';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { createStreamObserver } from '../../../src/gateway/composition/compose-data-plane.ts';

type Learned = Parameters<ReplicaControl['learn']>[0];

/** What is learned from a request whose record has these members. */
function learnFrom(members: Partial<RequestRecord>): readonly Learned[] {
  const learned: Learned[] = [];
  const take = createStreamObserver({ learn: (stream) => void learned.push(stream) });
  take({ record: { ...LEAST_RECORD, failed_attempts: [], ...members }, encodedSpan: null });
  return learned;
}

const STREAM = { stream: true, status: 200, model: 'm' };

test('a stream that ended well tells its times, without those before the last attempt', () => {
  const failed = { replica: 'a', failure: 'not_connected', status: null, duration_ms: 5, after_ms: 5 };
  const members = { ...STREAM, prompt_chars: 7, ttft_ms: 100, gap_p95_ms: 3, queue_ms: 20, attempts: 2 };
  expect(learnFrom({ ...members, failed_attempts: [failed] })).toEqual([
    { model: 'm', promptChars: 7, firstTokenMs: 75, gapMs: 3 },
  ]);
});

test('what is not known of it is null, and a stream without a model is one of an unknown model', () => {
  expect(learnFrom({ stream: true, status: 200 })).toEqual([
    { model: '', promptChars: null, firstTokenMs: null, gapMs: null },
  ]);
});

test.each([
  ['no stream', { stream: false }],
  ['a stream that broke off', { truncated: true, error_type: 'upstream_timeout' }],
  ['a stream whose client left', { error_type: 'client_closed' }],
  ['an error', { status: 500 }],
])('nothing is learned from %s', (_, members) => {
  expect(learnFrom({ ...STREAM, ttft_ms: 1, ...members })).toEqual([]);
});
