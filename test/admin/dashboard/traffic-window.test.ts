import { describe, expect, test } from 'vitest';
import { SLICE_MS, toSliceIndex } from '../../../src/admin/dashboard/slices.ts';
import { type TrafficFacts, TrafficWindow } from '../../../src/admin/dashboard/traffic-window.ts';

const SUCCESS: TrafficFacts = { replica: 'a', status: 200, e2e_ms: 100 };
const MINUTE_MS = 60_000;

describe('the figures of the last minute', () => {
  test('are zero before the first request', () => {
    const { total, byReplica } = new TrafficWindow(0).lastMinute(1_000);
    expect(total).toEqual({
      requests: 0,
      errors: 0,
      clientErrors: 0,
      canceled: 0,
      requestsPerSecond: 0,
      outputTokensPerSecond: 0,
      ttftP50Ms: null,
      ttftP95Ms: null,
      latencyP50Ms: null,
      latencyP95Ms: null,
    });
    expect(byReplica.size).toBe(0);
  });

  test('divide by the time since the start while it is shorter than a minute', () => {
    const window = new TrafficWindow(2_000);
    for (let index = 0; index < 20; index += 1) window.add({ ...SUCCESS, completion_tokens: 30 }, 4_000);
    const { total } = window.lastMinute(12_000);
    expect(total).toMatchObject({ requests: 20, requestsPerSecond: 2, outputTokensPerSecond: 60 });
  });

  test('drop older requests slice by slice', () => {
    const window = new TrafficWindow(0);
    window.add(SUCCESS, 1_000);
    window.add(SUCCESS, 7_000);
    expect(window.lastMinute(MINUTE_MS - 1).total.requests).toBe(2);
    expect(window.lastMinute(MINUTE_MS + 1_000).total.requests).toBe(1);
    expect(window.lastMinute(2 * MINUTE_MS).total.requests).toBe(0);
    expect(window.lastMinute(2 * MINUTE_MS).byReplica.get('a')?.traffic.requests).toBe(0);
  });

  test('are kept for each replica, and include requests without one only in the total', () => {
    const window = new TrafficWindow(0);
    window.add({ ...SUCCESS, ttft_ms: 10 }, 1_000);
    window.add({ ...SUCCESS, replica: 'b', e2e_ms: 1_000 }, 2_000);
    window.add({ status: 404, e2e_ms: 1 }, 3_000);
    const { total, byReplica } = window.lastMinute(10_000);
    expect(total.requests).toBe(3);
    expect([...byReplica.keys()]).toEqual(['a', 'b']);
    expect(byReplica.get('a')?.traffic.ttftP50Ms).toBeCloseTo(10, 0);
    expect(byReplica.get('b')?.traffic.ttftP50Ms).toBeNull();
    expect(byReplica.get('b')?.traffic.latencyP95Ms).toBeGreaterThan(920);
  });

  test.each<[string, Partial<TrafficFacts>, number]>([
    ['a 5xx', { status: 502, error_type: 'upstream_failed' }, 1],
    ['an incomplete response', { truncated: true, error_type: 'upstream_failed' }, 1],
    ['an error event in a stream', { error_type: 'upstream_error' }, 1],
    ['a client that disconnected', { truncated: true, error_type: 'client_closed' }, 0],
    ['a client that disconnected before the response', { status: 499, error_type: 'client_closed' }, 0],
    ['a rejected request', { status: 404, error_type: 'model_not_found' }, 0],
    ['a success', {}, 0],
  ])('count %s as so many errors', (_what, facts, errors) => {
    const window = new TrafficWindow(0);
    window.add({ ...SUCCESS, ...facts }, 1_000);
    expect(window.lastMinute(2_000).total.errors).toBe(errors);
  });
});

describe('the figures of one slice', () => {
  test('cover the requests that ended in it', () => {
    const window = new TrafficWindow(0);
    for (const nowMs of [0, 4_999, 5_000, 17_000]) window.add(SUCCESS, nowMs);
    expect([0, 1, 2, 3].map((index) => window.slice(index).requests)).toEqual([2, 1, 0, 1]);
    expect(window.slice(0).requestsPerSecond).toBe(0.4);
  });

  test('are kept for five minutes', () => {
    const window = new TrafficWindow(0);
    window.add(SUCCESS, 0);
    const later = 5 * MINUTE_MS + SLICE_MS;
    window.add(SUCCESS, later - SLICE_MS);
    expect(window.slice(0).requests).toBe(1);
    window.add(SUCCESS, later);
    expect(window.slice(0).requests).toBe(0);
    expect(window.slice(toSliceIndex(later)).requests).toBe(1);
  });
});
