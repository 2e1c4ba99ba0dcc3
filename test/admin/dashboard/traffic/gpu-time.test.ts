import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SLICE_MS } from '../../../../src/admin/dashboard/traffic/slices.ts';
import { type TrafficFacts, TrafficWindow } from '../../../../src/admin/dashboard/traffic/traffic-window.ts';

const GPUS = 8;
const MINUTE_MS = 60_000;
const facts = (e2e_ms: number, gpu_seconds: number): TrafficFacts => ({
  replica: 'a',
  model: 'm',
  tenant: 'acme',
  status: 200,
  e2e_ms,
  gpu_seconds,
});

function createWindow(): TrafficWindow {
  const window = new TrafficWindow(0);
  window.useGpuCounts(new Map([['a', GPUS]]), 0);
  return window;
}

const minuteOf = (window: TrafficWindow, nowMs: number) => window.lastMinute(nowMs).total.gpuSeconds ?? 0;

describe('the GPU time of the last minute', () => {
  test('has of a request of ten minutes on eight GPUs what the last minute used', () => {
    const window = createWindow();
    const endMs = 20 * MINUTE_MS;
    window.add(facts(10 * MINUTE_MS, 10 * 60 * GPUS), endMs - 1);
    const { total, byReplica, byModel, byTenant } = window.lastMinute(endMs - 1);
    expect(total.gpuSeconds).toBeCloseTo(60 * GPUS, 1);
    expect(byReplica.get('a')?.traffic.gpuSeconds).toBe(total.gpuSeconds);
    expect(byModel[0]?.traffic.gpuSeconds).toBe(total.gpuSeconds);
    expect(byTenant[0]?.traffic.gpuSeconds).toBe(total.gpuSeconds);
  });

  test('leaves slice by slice, and the history has each slice', () => {
    const window = createWindow();
    window.add(facts(30_000, 30 * GPUS), 59_999);
    expect(minuteOf(window, 59_999)).toBeCloseTo(30 * GPUS, 5);
    expect(window.slice(5).gpuSeconds).toBeNull();
    expect(minuteOf(window, 59_999 + 8 * SLICE_MS)).toBeCloseTo(20 * GPUS, 0);
  });

  test('is at most that of the GPUs, and complete, when requests shared them in turns', () => {
    const window = createWindow();
    // Alone in the first minute, together in the second one.
    window.add(facts(MINUTE_MS, 30 * GPUS), 2 * MINUTE_MS - 1);
    window.add(facts(2 * MINUTE_MS, 90 * GPUS), 2 * MINUTE_MS - 1);
    expect(minuteOf(window, 2 * MINUTE_MS - 1)).toBeLessThanOrEqual(60 * GPUS);
    expect(minuteOf(window, 2 * MINUTE_MS - 1)).toBeGreaterThan(59 * GPUS);
  });

  test('counts a request of a replica without a known number of GPUs', () => {
    const window = createWindow();
    window.add({ ...facts(100, 3), replica: 'b' }, 1_000);
    expect(minuteOf(window, 1_000)).toBe(3);
  });

  test('costs in each minute what its part of the request costs, and is without a cost if no request has one', () => {
    const window = createWindow();
    const priced = { ...facts(4 * MINUTE_MS, 40), cost: 8, currency: 'EUR', tenant: 'acme' };
    const endMs = 5 * MINUTE_MS - 1;
    window.add({ ...facts(100, 3), tenant: 'other' }, endMs);
    expect(window.lastMinute(endMs).total.cost).toBeNull();
    window.add(priced, endMs);
    const { total, byTenant } = window.lastMinute(endMs);
    expect(total.cost?.amount).toBeCloseTo(2, 1);
    const costs = byTenant.map(({ name, traffic: { cost } }) => [name, cost && Math.round(cost.amount)]);
    expect(Object.fromEntries(costs)).toEqual({ acme: 2, other: null });
    expect(total.cost?.currency).toBe('EUR');
    expect(window.lastMinute(endMs + 2 * MINUTE_MS).total.cost).toBeNull();
  });

  test('counts the time in the background as that of the request', () => {
    const window = createWindow();
    const endMs = 5 * MINUTE_MS;
    window.add({ ...facts(10, 240 * GPUS), background_ms: 4 * MINUTE_MS }, endMs - 1);
    expect(minuteOf(window, endMs - 1)).toBeCloseTo(60 * GPUS, 1);
  });

  test('is never above that of the GPUs, however requests overlap', () => {
    // How long after the one before each request begins, and how long it takes.
    const requests = fc.array(fc.tuple(fc.nat({ max: 20_000 }), fc.integer({ min: 1, max: 200_000 })), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(requests, (steps) => {
        const window = createWindow();
        for (const { endMs, durationMs, seconds } of toShares(steps)) {
          window.add(facts(durationMs, seconds), endMs);
          const passed = Math.min(endMs / 1_000, 60);
          expect(minuteOf(window, endMs)).toBeLessThanOrEqual(passed * GPUS + 1e-6);
        }
      }),
    );
  });
});

/** The shares of requests on one replica, as the gateway computes them: equal ones at each moment. */
function toShares(steps: readonly (readonly [number, number])[]) {
  let startMs = 0;
  const requests = steps.map(([waitMs, durationMs]) => {
    startMs += waitMs;
    return { startMs, durationMs, endMs: startMs + durationMs };
  });
  const times = [...new Set(requests.flatMap((request) => [request.startMs, request.endMs]))].toSorted(
    (a, b) => a - b,
  );
  const seconds = requests.map(() => 0);
  for (const [at, fromMs] of times.entries()) {
    const untilMs = times[at + 1] ?? fromMs;
    const held = requests.flatMap((each, index) =>
      each.startMs <= fromMs && each.endMs >= untilMs ? [index] : [],
    );
    for (const index of held)
      seconds[index] = (seconds[index] ?? 0) + (GPUS * (untilMs - fromMs)) / held.length / 1_000;
  }
  return requests
    .map((request, index) => ({ ...request, seconds: seconds[index] ?? 0 }))
    .toSorted((a, b) => a.endMs - b.endMs);
}
