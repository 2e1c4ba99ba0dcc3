import { describe, expect, test } from 'vitest';
import type { Overview } from '../../../../src/admin/dashboard/overview.ts';
import {
  toInflight,
  toSince,
  toState,
  toSummary,
  toUnconfirmed,
} from '../../../../src/admin/dashboard/page/state.js';

type Replica = Overview['replicas'][number];

const NOW = '2026-11-21T12:10:00.000Z';
const EARLIER = '2026-11-21T12:07:00.000Z';

const replica = (rest: Partial<Replica> = {}) =>
  ({
    ...{ name: 'a', drained: false, removing: false, inflight: 0, max_inflight: null, safe_to_stop: false },
    ...{ health: null, health_since: null, since: null, reason: null },
    ...rest,
  }) as Replica;

const failing = replica({ health: 'failing', health_since: EARLIER });
const drained = replica({ drained: true, safe_to_stop: true, since: EARLIER });

describe('a replica', () => {
  test('that fails has the state, its duration, and what it means', () => {
    expect(toState(failing)).toEqual({ kind: 'failing', text: 'Failing' });
    expect(toSince(failing, NOW)).toBe('for 3 min: tried last');
  });

  test('that is ok again is shown as serving, without a duration', () => {
    const ok = replica({ health: 'ok', health_since: EARLIER });
    expect(toState(ok)).toEqual({ kind: 'serving', text: 'Serving' });
    expect(toSince(ok, NOW)).toBe('');
  });

  test('that is drained is shown as safe to stop only if that is known', () => {
    expect(toState(drained).kind).toBe('safe');
    expect(toState({ ...drained, safe_to_stop: null }).kind).toBe('unsure');
    expect(toState({ ...drained, safe_to_stop: false, inflight: 1 })).toEqual({
      kind: 'draining',
      text: 'Draining, 1 request left',
    });
  });
});

describe('the confirmation of a drain', () => {
  test.each([
    [['b'], 'unknown until b has confirmed'],
    [['b', 'c'], 'unknown until b, c have confirmed'],
    [[], 'unknown until all have confirmed'],
  ])('names the gateways that are missing: %j', (unconfirmed, text) => {
    expect(toUnconfirmed({ ...drained, safe_to_stop: null, unconfirmed })).toBe(text);
  });

  test('is also shown without a fleet, and while requests are left', () => {
    expect(toUnconfirmed({ ...drained, safe_to_stop: null })).toBe('unknown until all have confirmed');
    const left = { ...drained, safe_to_stop: false, inflight: 2, unconfirmed: ['b'] };
    expect(toUnconfirmed(left)).toBe('not confirmed yet by b');
  });

  test('is empty when all have confirmed, and without a drain', () => {
    expect(toUnconfirmed({ ...drained, unconfirmed: [] })).toBe('');
    expect(toUnconfirmed(replica({ unconfirmed: [] }))).toBe('');
  });
});

test('requests in flight have their limit, but not in a fleet', () => {
  expect(toInflight(replica({ inflight: 3 }))).toBe('3');
  expect(toInflight(replica({ inflight: 3, max_inflight: 8 }))).toBe('3 of 8');
  expect(toInflight(replica({ inflight: 12, max_inflight: 8, unconfirmed: [] }))).toBe('12');
});

test('the summary counts each replica once', () => {
  expect(toSummary([replica(), replica()])).toBe('2 serving');
  expect(toSummary([replica(), failing, drained])).toBe('1 serving, 1 failing, 1 drained');
  expect(toSummary([replica(), { ...drained, health: 'failing' }])).toBe('1 serving, 1 drained');
  expect(toSummary([replica(), { ...drained, removing: true }])).toBe('1 serving, 1 being removed');
});
