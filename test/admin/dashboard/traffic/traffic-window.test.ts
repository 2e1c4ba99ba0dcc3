import { describe, expect, test } from 'vitest';
import { SLICE_MS, toSliceIndex } from '../../../../src/admin/dashboard/traffic/slices.ts';
import type { Traffic } from '../../../../src/admin/dashboard/traffic/tally.ts';
import { type TrafficFacts, TrafficWindow } from '../../../../src/admin/dashboard/traffic/traffic-window.ts';

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
      gpuSeconds: null,
      cost: null,
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

  test('have the GPU time of the requests that have one, by model and tenant too', () => {
    const window = new TrafficWindow(0);
    const named = { model: 'm', tenant: 'acme' };
    for (const gpu_seconds of [0.25, 1.5]) window.add({ ...SUCCESS, ...named, gpu_seconds }, 1_000);
    window.add({ ...SUCCESS, model: 'other' }, 1_000);
    const { total, byModel, byTenant } = window.lastMinute(2_000);
    expect(total.gpuSeconds).toBe(1.75);
    expect(byModel.map(({ traffic }) => traffic.gpuSeconds)).toEqual([1.75, null]);
    expect(byTenant.map(({ traffic }) => traffic.gpuSeconds)).toEqual([1.75]);
    expect(window.lastMinute(2 * MINUTE_MS).total.gpuSeconds).toBeNull();
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

  test.each<[string, Partial<TrafficFacts>, Partial<Traffic>]>([
    ['a 5xx', { status: 502, error_type: 'upstream_failed' }, { errors: 1 }],
    ['a broken response', { truncated: true, error_type: 'upstream_failed' }, { errors: 1 }],
    ['a 4xx', { status: 404 }, { clientErrors: 1 }],
    ['a client that disconnected', { truncated: true, error_type: 'client_closed' }, { canceled: 1 }],
    ['a redirect', { status: 307 }, {}],
    ['a success', {}, { latencyP50Ms: expect.closeTo(100, -1), ttftP50Ms: expect.closeTo(10, 0) }],
  ])('count %s once, and its durations only if it is a success', (_what, facts, counted) => {
    const window = new TrafficWindow(0);
    window.add({ ...SUCCESS, ttft_ms: 10, ...facts }, 1_000);
    const { total, byReplica } = window.lastMinute(2_000);
    const nothing = { errors: 0, clientErrors: 0, canceled: 0, latencyP50Ms: null, ttftP50Ms: null };
    expect(total).toMatchObject({ requests: 1, ...nothing, ...counted });
    expect(byReplica.get('a')?.traffic).toMatchObject({ ...total, attempts: 1 });
  });

  test('are not made faster by failures', () => {
    const window = new TrafficWindow(0);
    for (let index = 0; index < 99; index += 1) window.add({ ...SUCCESS, status: 503, e2e_ms: 1 }, 1_000);
    window.add({ ...SUCCESS, e2e_ms: 2_000 }, 1_000);
    expect(window.lastMinute(2_000).total.latencyP50Ms).toBeGreaterThan(1_800);
  });

  test('are kept for each model and tenant that a request names', () => {
    const window = new TrafficWindow(0);
    window.add({ ...SUCCESS, model: 'm', tenant: 'acme' }, 1_000);
    window.add({ ...SUCCESS, model: 'm' }, 1_000);
    window.add({ status: 404, e2e_ms: 1, model: 'n', tenant: 'acme' }, 1_000);
    window.add({ status: 400, e2e_ms: 1 }, 1_000);
    const { byModel, byTenant } = window.lastMinute(2_000);
    expect(byModel.map(({ name, traffic }) => [name, traffic.requests, traffic.clientErrors])).toEqual([
      ['m', 2, 0],
      ['n', 1, 1],
    ]);
    expect(byTenant.map(({ name, traffic }) => [name, traffic.requests])).toEqual([['acme', 2]]);
  });

  test('have the reasons of failures, with the names of models that are kept', () => {
    const window = new TrafficWindow(0);
    for (let index = 0; index < 500; index += 1) {
      const error = { status: 404, error_type: 'model_not_found', e2e_ms: 1 };
      window.add({ ...error, model: `invented-${index}` }, 1_000);
    }
    for (const status of [500, 500, 404]) window.add({ ...SUCCESS, status, model: 'invented-1' }, 1_000);
    window.add({ ...SUCCESS, truncated: true }, 1_000);
    window.add({ ...SUCCESS, status: 499, error_type: 'client_closed' }, 1_000);
    const reasons = window.lastMinute(2_000).failureReasons;
    expect(reasons).toHaveLength(50);
    expect(reasons.slice(0, 2)).toEqual([
      { code: 'model_not_found', status: 404, replica: null, model: '_OTHER', count: 300 },
      { code: '500', status: 500, replica: 'a', model: 'invented-1', count: 2 },
    ]);
    expect(window.lastMinute(2 * MINUTE_MS).failureReasons).toEqual([]);
  });
});

describe('the figures of a replica', () => {
  const failed = (replica: string, failure: string, status: number | null = null) => ({
    replica,
    failure,
    status,
    duration_ms: 300,
    after_ms: 300,
  });

  test('count every attempt at it, whoever answered in the end, while the request counts once', () => {
    const window = new TrafficWindow(0);
    const failed_attempts = [failed('b', 'status_retried', 503), failed('c', 'not_connected')];
    for (let count = 0; count < 3; count += 1) {
      window.add({ ...SUCCESS, model: 'm', e2e_ms: 700, attempts: 3, failed_attempts }, 1_000);
    }
    window.add({ ...SUCCESS, replica: 'b' }, 1_000);
    const { total, byModel, byReplica } = window.lastMinute(10_000);
    expect(total).toMatchObject({ requests: 4, errors: 0 });
    expect(byModel).toMatchObject([{ name: 'm', traffic: { requests: 3, errors: 0 } }]);
    expect(byReplica.get('a')?.traffic).toMatchObject({ requests: 3, attempts: 3, errors: 0 });
    expect(byReplica.get('b')?.traffic).toMatchObject({
      requests: 1,
      attempts: 4,
      errors: 3,
      requestsPerSecond: 0.1,
      attemptsPerSecond: 0.4,
      outcomes: { success: 1, error: 3 },
    });
    expect(byReplica.get('c')?.traffic).toMatchObject({
      requests: 0,
      attempts: 3,
      errors: 3,
      latencyP50Ms: null,
      outcomes: { error: 0, not_connected: 3 },
    });
  });

  test('have no time that the request spent elsewhere, those of the gateway have all of it', () => {
    const window = new TrafficWindow(0);
    const failed_attempts = [failed('b', 'status_retried', 503)];
    const times = { ttft_ms: 500, e2e_ms: 900, queue_ms: 100 };
    window.add({ ...SUCCESS, ...times, attempts: 2, failed_attempts }, 1_000);
    const { total, byReplica } = window.lastMinute(2_000);
    const within = (ms: number) => expect.closeTo(ms, -1.5);
    expect(total).toMatchObject({ ttftP50Ms: within(500), latencyP50Ms: within(900) });
    expect(byReplica.get('a')?.traffic).toMatchObject({ ttftP50Ms: within(100), latencyP50Ms: within(500) });
  });

  test('do not count an answer twice that the client got because no other replica took the request', () => {
    const window = new TrafficWindow(0);
    const failed_attempts = [failed('a', 'status_retried', 503)];
    window.add({ ...SUCCESS, status: 503, attempts: 1, failed_attempts }, 1_000);
    expect(window.lastMinute(2_000).byReplica.get('a')?.traffic).toMatchObject({
      requests: 1,
      attempts: 1,
      errors: 1,
      outcomes: { error: 1, success: 0 },
    });
  });

  test('have an error for no attempt that is not the fault of the replica', () => {
    const window = new TrafficWindow(0);
    const failed_attempts = [
      failed('b', 'loading', 503),
      failed('b', 'status_retried', 429),
      failed('b', 'reset_on_reuse'),
    ];
    window.add({ ...SUCCESS, attempts: 4, failed_attempts }, 1_000);
    expect(window.lastMinute(2_000).byReplica.get('b')?.traffic).toMatchObject({
      attempts: 3,
      errors: 0,
      clientErrors: 1,
      outcomes: { loading: 1, client_error: 1, repeated: 1 },
    });
  });
});

describe('the trend of a replica', () => {
  test('has the attempts at it and their errors of five minutes', () => {
    const window = new TrafficWindow(0);
    window.add(SUCCESS, 1_000);
    window.add({ ...SUCCESS, status: 500 }, 1_000);
    const failed_attempts = [
      { replica: 'a', failure: 'not_connected', status: null, duration_ms: 1, after_ms: 1 },
    ];
    window.add({ ...SUCCESS, replica: 'b', attempts: 2, failed_attempts }, 12_000);
    const trend = window.lastMinute(20_000).byReplica.get('a')?.trend;
    expect(trend?.attempts.slice(-5)).toEqual([0, 2, 0, 1, 0]);
    expect(trend?.errors.slice(-5)).toEqual([0, 1, 0, 1, 0]);
  });

  test('is forgotten when there is nothing to show, so that replaced replicas take no memory', () => {
    const window = new TrafficWindow(0);
    window.add(SUCCESS, 1_000);
    expect(window.lastMinute(5 * MINUTE_MS).byReplica.get('a')?.trend.attempts[0]).toBe(1);
    expect(window.lastMinute(5 * MINUTE_MS + 2 * SLICE_MS).byReplica.size).toBe(0);
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
