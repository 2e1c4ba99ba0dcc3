import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeRow, makeSums, makeUsage } from '#testkit/dashboard/made-history.ts';
import { MADE_AT, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import {
  toCaption,
  toKnownSpan,
  toMeanInflight,
  toParts,
  toPoints,
  toReasons,
  toTraffic,
} from '../../../../../src/admin/dashboard/page/history/figures.js';
import { toRange, toTicks } from '../../../../../src/admin/dashboard/page/history/range.js';

const NOW_MS = Date.parse(MADE_AT);
const MINUTE_MS = 60_000;

describe('the points of a range', () => {
  test('sum their step, and a step without requests is zero', () => {
    const rows = [makeRow({}, { start: secondsAgo(180), requests: 120, errors: 6 })];
    const points = toPoints(makeUsage({ rows, since: secondsAgo(180) }), {
      stepMs: MINUTE_MS,
      nowMs: NOW_MS,
    });
    expect(points).toMatchObject([
      { timeMs: NOW_MS - 120_000, requests_per_s: 2, errors: 6, errors_per_s: 0.1, latency_p95_ms: 3_480 },
      { requests_per_s: 0, errors: 0, inflight: 0, latency_p95_ms: null },
      { timeMs: NOW_MS, requests_per_s: 0 },
    ]);
  });

  test('the last one is of the time that is over, and left out while that is short', () => {
    const since = secondsAgo(90);
    const rows = [makeRow({}, { start: secondsAgo(30), requests: 60 })];
    const usage = makeUsage({ rows, since });
    const [, last] = toPoints(usage, { stepMs: MINUTE_MS, nowMs: NOW_MS });
    expect(last).toMatchObject({ timeMs: NOW_MS, requests_per_s: 2 });
    expect(toPoints(usage, { stepMs: MINUTE_MS, nowMs: NOW_MS - 25_000 })).toHaveLength(1);
  });

  test('before the history begins nothing is known', () => {
    const usage = makeUsage({ since: secondsAgo(180) });
    const begun = { ...usage, kept: { ...usage.kept, hours_since: secondsAgo(100) } };
    const rates = toPoints(begun, { stepMs: MINUTE_MS, nowMs: NOW_MS }).map(
      ({ requests_per_s }) => requests_per_s,
    );
    expect(rates).toEqual([null, 0, 0]);
    expect(toKnownSpan(begun, NOW_MS)).toEqual({ fromMs: NOW_MS - 100_000, untilMs: NOW_MS });
  });
});

test('requests in flight on average are those that arrive per second, times their seconds', () => {
  const sums = makeSums({ requests: 120, e2e_ms: { mean: 2_000, p50: null, p95: null } });
  expect(toMeanInflight(sums, 60)).toBe(4);
});

test('without GPUs and prices there is no GPU time and no cost', () => {
  expect(toTraffic(makeSums({ gpu_seconds: 0, costs: {} }), 60)).toMatchObject({
    gpu_seconds: null,
    cost: null,
  });
});

test('the parts of a range are named: those that are not known, and all others', () => {
  const rows = [
    makeRow({ tenant: 'acme' }),
    makeRow({ tenant: null }),
    makeRow({ tenant: null }, { other: true }),
  ];
  const parts = toParts(makeUsage({ rows, by: ['tenant'] }), 'tenant', 60);
  expect(parts.map(({ name }) => name)).toEqual(['acme', '', '_OTHER']);
  expect(parts[0]?.last_minute).toMatchObject({ requests: 240, requests_per_s: 4 });
});

test('the costs of a range are all in the currency that the head of their column names', () => {
  const rows = [
    makeRow({ tenant: 'acme' }, { costs: { EUR: 4, USD: 3 } }),
    makeRow({ tenant: 'late' }, { costs: { USD: 5 } }),
    makeRow({ tenant: 'swapped' }, { costs: { USD: 6, EUR: 7 } }),
  ];
  const total = makeSums({ costs: { EUR: 11, USD: 14 } });
  const parts = toParts(makeUsage({ rows, total, by: ['tenant'] }), 'tenant', 60);
  expect(parts.map(({ last_minute: { cost, currency } }) => [cost, currency])).toEqual([
    [4, 'EUR'],
    [null, null],
    [7, 'EUR'],
  ]);
});

test('a client that left is no reason of a failure', () => {
  const rows = [
    makeRow({ replica: 'a', model: 'm' }, { failures: { upstream_failed: 2, client_closed: 9, '499': 1 } }),
    makeRow({ replica: null, model: 'x' }, { failures: { '404': 5 } }),
  ];
  expect(toReasons(makeUsage({ rows, by: ['replica', 'model'] }))).toEqual([
    { code: '404', status: 404, count: 5, replica: null, model: 'x' },
    { code: 'upstream_failed', status: null, count: 2, replica: 'a', model: 'm' },
  ]);
});

test('a caption says when the history begins, if that is within the range', () => {
  const usage = makeUsage();
  const young = { ...usage, kept: { ...usage.kept, hours_since: secondsAgo(1_800) } };
  expect(toCaption(toRange('1h'), usage, NOW_MS, String)).toBe('the last hour');
  expect(toCaption(toRange('1h'), young, NOW_MS, () => '12:00')).toBe(
    'the last hour; the history begins at 12:00',
  );
});

describe('ranges', () => {
  test('an unknown name is the live one', () => {
    expect(toRange('constructor').name).toBe('5m');
    expect(toRange(null).name).toBe('5m');
  });

  test.each([
    ['Europe/Berlin', '2026-03-31T10:00:00Z'],
    ['Europe/Berlin', '2026-10-27T10:00:00Z'],
    ['Australia/Lord_Howe', '2026-10-06T10:00:00Z'],
    ['America/Sao_Paulo', '2026-10-27T10:00:00Z'],
  ])(
    'the days of a week in %s until %s begin at midnight, each once, also when the clocks change',
    (zone, end) => {
      vi.stubEnv('TZ', zone);
      onTestFinished(() => void vi.unstubAllEnvs());
      const untilMs = Date.parse(end);
      const days = toTicks({ fromMs: untilMs - 7 * 24 * 60 * MINUTE_MS, untilMs }, 8).map(
        (ms) => new Date(ms),
      );
      expect(days.map((day) => day.getHours() + day.getMinutes())).toEqual(days.map(() => 0));
      expect(new Set(days.map((day) => day.getDate())).size).toBe(7);
    },
  );

  test.each(['5m', '1h', '1d', '7d'])('the marks of %s are inside of it, and not too many', (name) => {
    const span = { fromMs: NOW_MS - toRange(name).ms, untilMs: NOW_MS };
    const ticks = toTicks(span, 8);
    expect(ticks.length).toBeGreaterThanOrEqual(3);
    expect(ticks.length).toBeLessThanOrEqual(8);
    expect(ticks.every((ms) => ms >= span.fromMs && ms < span.untilMs)).toBe(true);
  });
});
