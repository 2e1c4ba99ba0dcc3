import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DrainState } from '#replicas/drain-state';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { Drains } from '../../../src/replicas/drains/replica-drains.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const WHY = { reason: null, at: '2026-01-01T00:00:00.000Z' };

function createDrains(
  silentWorkers: { now: readonly number[]; asked?: number },
  stored: ReadonlyMap<string, DrainState> = new Map(),
  nowMs?: () => number,
) {
  return new Drains({
    shared: new SharedState(allocateSharedState(2), nowMs),
    file: { read: async () => stored, write: async () => undefined, close: async () => undefined },
    barrier: async () => {
      silentWorkers.asked = (silentWorkers.asked ?? 0) + 1;
      return silentWorkers.now;
    },
    log: { debug: () => undefined },
  });
}

/** The workers are not asked again. */
async function expectNoMore(silentWorkers: { readonly asked: number }) {
  const { asked } = silentWorkers;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(silentWorkers.asked).toBe(asked);
}

test('a drain is confirmed when every worker has answered', async () => {
  const drains = createDrains({ now: [] });
  drains.set('a', true, WHY);
  expect(drains.isConfirmed('a')).toBe(false);
  expect(await drains.confirm('a')).toEqual([]);
  expect(drains.isConfirmed('a')).toBe(true);
  drains.set('a', false, WHY);
  expect(drains.isConfirmed('a')).toBe(false);
});

test('when a drain took effect does not depend on the time of day, here or on the gateway that made it', async () => {
  const drains = createDrains({ now: [] });
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const { after } = createDrains({ now: [] }).set('a', true, { ...WHY, at: hourAgo });
  drains.adopt('a', after);
  const changedMs = drains.changedMsOf('a');
  expect(performance.now() - changedMs).toBeLessThan(60_000);
  drains.set('a', true, { reason: 'again', at: new Date().toISOString() });
  expect(drains.changedMsOf('a')).toBe(changedMs);
  expect(drains.changedMsOf('b')).toBe(Number.NEGATIVE_INFINITY);
});

test('a restart knows when a drain of before took effect, by the time of day, but not as one that is to come', async () => {
  const at = Date.parse(WHY.at);
  const { after } = createDrains({ now: [] }).set('a', true, WHY);
  const agoMs = async (nowEpochMs: number) => {
    const drains = createDrains({ now: [] }, new Map([['a', after]]));
    await drains.restore(nowEpochMs);
    return Math.floor((performance.now() - drains.changedMsOf('a')) / 60_000);
  };
  expect([await agoMs(at + 3_600_000), await agoMs(at - 3_600_000)]).toEqual([60, 0]);
});

test('a worker that does not answer is reported, and asked again until it does', async () => {
  const silent = { now: [2], asked: 0 };
  const drains = createDrains(silent);
  drains.set('a', true, WHY);
  expect(await drains.confirm('a')).toEqual([2]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(drains.isConfirmed('a')).toBe(false);

  silent.now = [];
  await vi.advanceTimersByTimeAsync(1_000);
  expect(drains.isConfirmed('a')).toBe(true);
  await expectNoMore(silent);
});

test('an old answer does not confirm a state that has changed since', async () => {
  const silent = { now: [1], asked: 0 };
  const drains = createDrains(silent);
  drains.set('a', true, WHY);
  const confirming = drains.confirm('a');
  drains.set('a', false, WHY);
  drains.set('a', true, WHY);
  silent.now = [];
  await confirming;
  expect(drains.isConfirmed('a')).toBe(false);
  await expectNoMore(silent);
});

test('the state that an earlier run stored is confirmed before a worker runs', async () => {
  const earlier = createDrains({ now: [] });
  earlier.set('a', true, WHY);
  const drains = createDrains({ now: [1] }, new Map([['a', earlier.stateOf('a')]]));
  await drains.restore();
  expect(drains.stateOf('a')).toEqual(earlier.stateOf('a'));
  expect(drains.isConfirmed('a')).toBe(true);
});

test('a second drain keeps the time of the first, and returns the state before', () => {
  const drains = createDrains({ now: [] });
  expect(drains.set('a', true, { reason: null, at: 'first' }).before.drained).toBe(false);
  expect(drains.set('a', true, { reason: null, at: 'second' }).before.drained).toBe(true);
  expect(drains.stateOf('a')).toMatchObject({ drained: true, since: 'first', reason: null });
});

test('a reason that is given later is kept', () => {
  const drains = createDrains({ now: [] });
  drains.set('a', true, { reason: 'new driver', at: 'first' });
  drains.set('a', true, { reason: null, at: 'second' });
  const first = drains.stateOf('a');
  expect(first).toMatchObject({ since: 'first', reason: 'new driver' });
  drains.set('a', true, { reason: 'new kernel', at: 'third' });
  expect(drains.stateOf('a')).toMatchObject({ since: 'first', reason: 'new kernel' });
  expect(drains.stateOf('a').version > first.version).toBe(true);
});

test('only the undrain of a drained replica begins a ramp, also after a restart: a further one changes none', async () => {
  const drains = createDrains({ now: [] }, new Map(), () => 5_000);
  drains.set('a', false, { ...WHY, rampMs: 60_000 });
  drains.set('b', true, WHY);
  drains.set('b', false, { ...WHY, rampMs: 60_000 });
  drains.set('b', false, { ...WHY, rampMs: 30_000 });
  const stored = new Map(['a', 'b'].map((name) => [name, drains.stateOf(name)]));
  const restarted = createDrains({ now: [] }, stored, () => 5_000);
  await restarted.restore(Date.parse(WHY.at));
  const lasting = [null, { elapsedMs: 0, durationMs: 60_000 }];
  expect(['a', 'b'].map((name) => drains.rampOf(name))).toEqual(lasting);
  expect(['a', 'b'].map((name) => restarted.rampOf(name))).toEqual(lasting);
});

describe('a ramp that was on at the last stop', () => {
  const NOON = Date.parse('2026-01-01T12:00:00.000Z');
  const state = {
    drained: false,
    since: '2026-01-01T12:00:00.000Z',
    reason: null,
    version: '',
    rampMs: 60_000,
  };

  test.each([
    [0, { elapsedMs: 0, durationMs: 60_000 }],
    [45_000, { elapsedMs: 45_000, durationMs: 60_000 }],
    [60_000, null],
    // The clock was set back.
    [-3_600_000, { elapsedMs: 0, durationMs: 60_000 }],
  ])('is as far as the time %i ms after the undrain says', async (afterMs, progress) => {
    const drains = createDrains({ now: [] }, new Map([['a', state]]), () => 5_000);
    await drains.restore(NOON + afterMs);
    expect(drains.rampOf('a')).toEqual(progress);
  });
});
