import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeRecord } from '#testkit/dashboard/made-overview.ts';
import { timeOf, toPhases } from '../../../../../src/admin/dashboard/page/records/phases.js';

type Changes = Parameters<typeof makeRecord>[1];
const read = (changes: Changes) =>
  toPhases(makeRecord(1, changes)).map(({ kind, fromMs, untilMs }) => [kind, fromMs, untilMs]);
const failedAt = (replica: string, after_ms: number, duration_ms: number) => ({
  replica,
  failure: 'not_connected',
  status: null,
  after_ms,
  duration_ms,
});

describe('the parts of a request', () => {
  test('are the wait for the first token and the stream', () => {
    expect(read({ ttft_ms: 120, e2e_ms: 1_400 })).toEqual([
      ['first_token', 0, 120],
      ['stream', 120, 1_400],
    ]);
  });

  test('of an answer in one piece are one', () => {
    const { ttft_ms: _, ...record } = makeRecord(1, { stream: false, e2e_ms: 80 });
    expect(toPhases(record)).toMatchObject([{ kind: 'answer', fromMs: 0, untilMs: 80 }]);
  });

  test('begin with the wait for a replica', () => {
    expect(read({ queue_ms: 2_100, ttft_ms: 2_300, e2e_ms: 3_000 })).toEqual([
      ['queue', 0, 2_100],
      ['first_token', 2_100, 2_300],
      ['stream', 2_300, 3_000],
    ]);
  });

  test('have each attempt that failed, and the waits before it', () => {
    const failed_attempts = [failedAt('b', 1_010, 10), failedAt('c', 1_030, 15)];
    expect(read({ queue_ms: 900, attempts: 3, failed_attempts, ttft_ms: 1_200, e2e_ms: 2_000 })).toEqual([
      ['gateway', 0, 100],
      ['queue', 100, 1_000],
      ['failed', 1_000, 1_010],
      ['gateway', 1_010, 1_015],
      ['failed', 1_015, 1_030],
      ['first_token', 1_030, 1_200],
      ['stream', 1_200, 2_000],
    ]);
  });

  test('have the longest silence where it was', () => {
    expect(read({ ttft_ms: 100, silence_ms: 9_000, silence_after_ms: 400, e2e_ms: 10_000 })).toEqual([
      ['first_token', 0, 100],
      ['stream', 100, 400],
      ['silence', 400, 9_400],
      ['stream', 9_400, 10_000],
    ]);
  });

  test('end in the gateway where no attempt succeeded', () => {
    const failed = {
      status: 502,
      error_type: 'upstream_failed',
      attempts: 1,
      failed_attempts: [failedAt('a', 5, 5)],
    };
    const { ttft_ms: _, ...record } = makeRecord(1, { ...failed, e2e_ms: 6 });
    expect(toPhases(record).map(({ kind }) => kind)).toEqual(['failed', 'gateway']);
  });

  test('touch each other, and end with the request, whatever a record says', () => {
    const ms = fc.double({ min: 0, max: 100_000, noNaN: true });
    const attempt = fc.record({
      replica: fc.constant('b'),
      failure: fc.constant('loading'),
      status: fc.constant(null),
      after_ms: ms,
      duration_ms: ms,
    });
    const changes = fc.record(
      {
        e2e_ms: ms,
        ttft_ms: ms,
        queue_ms: ms,
        silence_ms: ms,
        silence_after_ms: ms,
        attempts: fc.nat(4),
        failed_attempts: fc.array(attempt, { maxLength: 4 }),
      },
      { requiredKeys: ['e2e_ms', 'ttft_ms'] },
    );
    fc.assert(
      fc.property(changes, (given) => {
        const record = makeRecord(1, given);
        const phases = toPhases(record);
        let atMs = 0;
        for (const { fromMs, untilMs } of phases) {
          // Parts that are shorter than the clock can tell are left out.
          expect(fromMs - atMs).toBeGreaterThanOrEqual(0);
          expect(fromMs - atMs).toBeLessThan(1);
          expect(untilMs).toBeLessThanOrEqual(record.e2e_ms);
          atMs = untilMs;
        }
        expect(record.e2e_ms - atMs).toBeLessThan(1);
        expect(timeOf(phases, 'queue')).toBeLessThanOrEqual((record.queue_ms ?? 0) + 0.001);
      }),
    );
  });
});
