import { describe, expect, test } from 'vitest';
import { HEALTH_JUDGES, HEALTH_TEXTS } from '#replicas/health-state';
import { REACHABILITY_REASONS, REASON_TEXTS } from '#replicas/reachability';
import { MADE_AT, makeReplica, type OverviewReplica, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import {
  toInflight,
  toReason,
  toState,
  toSummary,
} from '../../../../../src/admin/dashboard/page/replicas/state.js';

const NOW = MADE_AT;
const EARLIER = secondsAgo(180);

const replica = (changes: Partial<OverviewReplica> = {}) =>
  makeReplica({ name: 'a', inflight: 0, ...changes });

const failing = replica({
  health: 'failing',
  health_reasons: ['probes', 'frozen'],
  health_since: EARLIER,
});
const drained = replica({ drained: true, safe_to_stop: true, since: EARLIER, health: null });
const unreachable = replica({
  reachability: 'unreachable',
  reachability_since: EARLIER,
  reachability_reason: 'connection_refused',
});

const ALWAYS = { requests: null, since: null, until: null };
const FOR_A_WHILE = { requests: 0.1, since: EARLIER, until: secondsAgo(-60) };

describe('a replica', () => {
  test.each([
    [unreachable, 'Unreachable', 'connection refused · 3 min'],
    [replica({ ...unreachable, health: 'failing' }), 'Unreachable', 'connection refused · 3 min'],
    [replica({ reachability: 'loading', reachability_since: EARLIER }), 'Loading', '3 min'],
    [failing, 'Failing', 'probes fail, frozen · 3 min'],
    [replica({ reachability: 'unknown', reachability_since: null }), 'Not seen yet', ''],
    [replica({ health: 'ok', health_since: EARLIER }), 'Serving', ''],
    [
      replica({ silent_streams: { count: 6, running: 20, oldest_ms: 12_400 } }),
      'Serving',
      '6 of 20 streams silent · 12 s',
    ],
    [
      { ...failing, silent_streams: { count: 1, running: 1, oldest_ms: 125_000 } },
      'Failing',
      'probes fail, frozen · 3 min · 1 of 1 stream silent · 2 min',
    ],
    [drained, 'Drained', 'Safe to stop · 3 min'],
    [{ ...drained, reachability: 'unreachable' as const }, 'Drained', 'Safe to stop · 3 min'],
    [{ ...drained, safe_to_stop: false, inflight: 1 }, 'Draining', '1 request left'],
    [replica({ shadow: ALWAYS }), 'Shadow', ''],
    [replica({ shadow: FOR_A_WHILE }), 'Shadow', 'copies of 10 % of requests · 3 min'],
    [{ ...unreachable, shadow: ALWAYS }, 'Unreachable', 'connection refused · 3 min'],
    [
      { ...drained, shadow: FOR_A_WHILE, inflight: 1, safe_to_stop: false },
      'Draining',
      '1 request left · copies of 10 % of requests',
    ],
    [replica({ removing: true, inflight: 2 }), 'Draining', 'being removed · 2 requests left'],
  ])('%#: has one word for its state, with its reason and its duration: %s', (shown, word, detail) => {
    expect(toState(shown, NOW)).toMatchObject({ word, detail });
  });

  test.each(REACHABILITY_REASONS)('has the words of the gateway for the reason %s', (reachability_reason) => {
    expect(toReason(replica({ reachability_reason }))).toBe(REASON_TEXTS[reachability_reason]);
  });

  test.each(HEALTH_JUDGES)('has the words of the gateway for the judge %s', (judge) => {
    const failing = replica({ health: 'failing', health_reasons: [judge], health_since: NOW });
    expect(toState(failing, NOW).detail).toContain(HEALTH_TEXTS[judge]);
  });

  test('that is drained is safe to stop only if that is known, and has its reason', () => {
    const unsure = { ...drained, safe_to_stop: null, reason: 'driver update' };
    expect(toState(unsure, NOW).detail).toBe('unknown until all have confirmed · 3 min · driver update');
  });
});

describe('the confirmation of a drain', () => {
  test.each([
    [['b'], 'unknown until b has confirmed'],
    [['b', 'c'], 'unknown until b, c have confirmed'],
    [[], 'unknown until all have confirmed'],
  ])('names the gateways that are missing: %j', (unconfirmed, text) => {
    expect(toState({ ...drained, safe_to_stop: null, unconfirmed }, NOW).detail).toContain(text);
  });

  test('is also shown while requests are left', () => {
    const left = { ...drained, safe_to_stop: false, inflight: 2, unconfirmed: ['b'] };
    expect(toState(left, NOW).detail).toBe('2 requests left · not confirmed yet by b');
  });

  test('is empty when all have confirmed', () => {
    expect(toState({ ...drained, unconfirmed: [] }, NOW).detail).toBe('Safe to stop · 3 min');
  });
});

test('requests in flight have their limit, but not in a fleet', () => {
  expect(toInflight(replica({ inflight: 3 }))).toBe('3');
  expect(toInflight(replica({ inflight: 3, max_inflight: 8 }))).toBe('3 of 8');
  expect(toInflight(replica({ inflight: 12, max_inflight: 8, unconfirmed: [] }))).toBe('12');
});

test('the summary counts each replica once, the most urgent first', () => {
  expect(toSummary([replica(), replica()])).toBe('2 serving');
  expect(toSummary([replica(), failing, drained, unreachable])).toBe(
    '1 unreachable, 1 failing, 1 drained, 1 serving',
  );
  expect(toSummary([replica(), { ...drained, health: 'failing' }])).toBe('1 drained, 1 serving');
});
