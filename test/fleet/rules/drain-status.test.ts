import { describe, expect, test } from 'vitest';
import { drainStatusOf, propagationOf, unawareOf } from '../../../src/fleet/rules/drain-status.ts';
import type { FleetState } from '../../../src/fleet/rules/fleet-state.ts';
import { HEARTBEAT_VALID_MS, STABLE_AFTER_MS } from '../../../src/fleet/timing.ts';
import type { Heartbeat } from '../../../src/fleet/wire-format.ts';
import {
  createStableState,
  DRAIN,
  heartbeatOf,
  NEW_ID,
  NOW,
  OTHER,
  SELF,
  snapshotOf,
  stampAt,
  stateAfter,
  THIRD,
  withRead,
} from '../model/states.ts';

const IDLE = { inflight: 0, background: { running: 0, unknown: 0 } };

const statusOfX = (state: FleetState, nowMs = NOW) => drainStatusOf(state, 'x', IDLE, nowMs);

/** A stable gateway that has read one other gateway. */
const withOther = (members: Partial<Heartbeat> = {}) =>
  withRead(createStableState(), NOW, {
    snapshots: [snapshotOf(OTHER, 'gw-b')],
    heartbeats: [heartbeatOf(OTHER, members)],
  });

describe('a drained replica', () => {
  test('is safe to stop when the other gateway has applied the drain and has nothing in flight', () => {
    expect(statusOfX(withOther())).toEqual({ safeToStop: true, ...IDLE, unconfirmed: [] });
  });

  test('stays safe to stop while the heartbeat of the other gateway is valid', () => {
    const sentAtMs = STABLE_AFTER_MS;
    expect(statusOfX(withOther(), sentAtMs + HEARTBEAT_VALID_MS - 1).safeToStop).toBe(true);
    expect(statusOfX(withOther(), sentAtMs + HEARTBEAT_VALID_MS)).toMatchObject({
      safeToStop: null,
      unconfirmed: ['gw-b'],
    });
  });

  test('is not safe to stop while the other gateway has a request in flight', () => {
    const state = withOther({ inflight: new Map([['x', 2]]) });
    expect(statusOfX(state)).toEqual({ safeToStop: false, ...IDLE, inflight: 2, unconfirmed: [] });
    expect(drainStatusOf(state, 'x', { ...IDLE, inflight: 1 }, NOW).inflight).toBe(3);
  });

  test.each([
    ['goes on', { running: 1, unknown: 0 }, false],
    ['may go on', { running: 0, unknown: 2 }, null],
  ] as const)(
    'is not safe to stop while it %s with a response to the other gateway',
    (_, background, safeToStop) => {
      const state = withOther({ background: new Map([['x', background]]) });
      expect(statusOfX(state)).toEqual({ safeToStop, inflight: 0, background, unconfirmed: [] });
      const own = { inflight: 0, background: { running: 3, unknown: 4 } };
      expect(drainStatusOf(state, 'x', own, NOW)).toMatchObject({
        safeToStop: false,
        background: { running: 3 + background.running, unknown: 4 + background.unknown },
      });
    },
  );

  test.each<[string, Partial<Heartbeat>]>([
    ['acknowledges no heartbeat of this one', { heard: new Map() }],
    ['acknowledges a heartbeat that was never sent', { heard: new Map([[SELF, 99]]) }],
    ['has applied another drain', { drained: new Map([['x', stampAt(9)]]) }],
    ['has a newer snapshot than the one that was read', { revision: 2 }],
  ])('has an unknown status while the other gateway %s', (_, members) => {
    expect(statusOfX(withOther(members))).toMatchObject({ safeToStop: null, unconfirmed: ['gw-b'] });
  });

  test('has an unknown status while a gateway that only the other one knows has not been read', () => {
    const snapshots = [snapshotOf(OTHER, 'gw-b', { members: new Map([[THIRD, 'gw-c']]) })];
    const state = withRead(createStableState(), NOW, { snapshots, heartbeats: [heartbeatOf(OTHER)] });
    expect(statusOfX(state)).toMatchObject({ safeToStop: null, unconfirmed: ['gw-c'] });
  });

  test('has an unknown status while the store contains a gateway whose snapshot cannot be read', () => {
    const event = { snapshots: [], heartbeats: [], newId: NEW_ID, syncStartedAtMs: NOW } as const;
    const revisions = new Map([[OTHER, 1]]);
    const state = stateAfter(createStableState(), { kind: 'read', revisions, ...event }, NOW);
    expect(statusOfX(state)).toMatchObject({ safeToStop: null, unconfirmed: [OTHER] });
  });

  test('is judged by the latest heartbeat, even if an older copy of the store is read later', () => {
    const latest = withOther({ number: 5, drained: new Map() });
    expect(statusOfX(withRead(latest, NOW, { heartbeats: [heartbeatOf(OTHER)] })).safeToStop).toBeNull();
  });
});

describe('the requests in flight of a fleet', () => {
  test('are those of gateways whose heartbeat is valid', () => {
    const state = withOther({ inflight: new Map([['x', 2]]) });
    const lastMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS - 1;
    expect([lastMs, lastMs + 1].map((nowMs) => statusOfX(state, nowMs).inflight)).toEqual([2, 0]);
    expect(drainStatusOf(state, 'unknown', { ...IDLE, inflight: 1 }, NOW)).toMatchObject({
      safeToStop: false,
      inflight: 1,
      unconfirmed: [],
    });
  });

  test('make a drained replica unsafe to stop, even one alone', () => {
    expect(
      [0, 1].map((inflight) => drainStatusOf(withOther(), 'x', { ...IDLE, inflight }, NOW).safeToStop),
    ).toEqual([true, false]);
  });
});

test('a replica that is not drained is not safe to stop, whatever is in flight', () => {
  const drain = { ...DRAIN, drained: false, version: stampAt(20) };
  const state = stateAfter(createStableState(), { kind: 'changed', replica: 'x', drain }, NOW);
  expect(statusOfX(state)).toMatchObject({ safeToStop: false, inflight: 0, unconfirmed: [] });
});

test('a gateway that is alone and has not read the store for too long knows nothing of what is safe', () => {
  const state = createStableState();
  const lastMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
  expect(statusOfX(state, lastMs)).toMatchObject({ safeToStop: true, unconfirmed: [] });
  expect(statusOfX(state, lastMs + 1)).toMatchObject({ safeToStop: null, unconfirmed: [] });
});

test('a gateway whose snapshot was not read yet has confirmed no drain', () => {
  const state = withRead(createStableState(), NOW, { snapshots: [snapshotOf(OTHER, 'gw-b')] });
  const unread = withRead({ ...state, peers: new Map() }, NOW, { heartbeats: [heartbeatOf(OTHER)] });
  expect(statusOfX(unread)).toMatchObject({ safeToStop: null, unconfirmed: ['gw-b'] });
});

describe('a gateway is unaware of a drain state', () => {
  const stateWith = (drains: ReadonlyMap<string, typeof DRAIN>) =>
    withRead(createStableState(), NOW, { snapshots: [snapshotOf(OTHER, 'gw-b', { drains })] });

  test.each([
    ['that is later than the one that it has told', stateWith(new Map([['x', DRAIN]])), 11, ['gw-b']],
    ['of which it has told nothing', stateWith(new Map()), 10, ['gw-b']],
    [
      'if it has not been read',
      { ...createStableState(), members: new Map([[OTHER, 'gw-b']]) },
      10,
      ['gw-b'],
    ],
    [
      'if only its heartbeat was read',
      withRead({ ...createStableState(), members: new Map([[OTHER, 'gw-b']]) }, NOW, {
        heartbeats: [heartbeatOf(OTHER)],
      }),
      10,
      ['gw-b'],
    ],
    ['but not of one that it has told', stateWith(new Map([['x', DRAIN]])), 10, []],
    ['nor of one before it', stateWith(new Map([['x', DRAIN]])), 9, []],
  ])('%s', (_, state, at, names) => {
    expect(unawareOf(state, 'x', stampAt(at))).toEqual(names);
  });

  test('and each name is told once, in order', () => {
    const members = new Map([
      [OTHER, 'gw-c'],
      [THIRD, 'gw-b'],
      [NEW_ID, 'gw-c'],
    ]);
    expect(unawareOf({ ...createStableState(), members }, 'x', DRAIN.version)).toEqual(['gw-b', 'gw-c']);
  });
});

describe('a call to drain', () => {
  const callAt = (calledAtMs: number, drained = true) => ({ replica: 'x', drained, calledAtMs });
  const synced = stateAfter(withOther(), { kind: 'published', revision: 1, syncStartedAtMs: NOW }, NOW);

  test('is known in the fleet when a sync that began after it has ended', () => {
    const scopes = [NOW - 1, NOW].map((atMs) => propagationOf(synced, callAt(atMs), NOW).scope);
    expect(scopes).toEqual(['fleet', 'local']);
    expect(propagationOf(createStableState(), callAt(0), NOW).scope).toBe('local');
  });

  test('is confirmed by the gateways that have applied a drain, and by those that know of an undrain', () => {
    const idle = withOther({ drained: new Map() });
    expect(propagationOf(idle, callAt(0), NOW).unconfirmed).toEqual(['gw-b']);
    const drain = { ...DRAIN, drained: false, version: stampAt(20) };
    const undrained = stateAfter(withOther(), { kind: 'changed', replica: 'x', drain }, NOW);
    expect(propagationOf(undrained, callAt(0, false), NOW).unconfirmed).toEqual(['gw-b']);
  });

  test('is overtaken when the opposite holds', () => {
    expect(propagationOf(synced, callAt(0), NOW).unconfirmed).toEqual([]);
    expect([true, false].map((drained) => propagationOf(synced, callAt(0, drained), NOW).overtaken)).toEqual([
      false,
      true,
    ]);
    const undrain = { replica: 'never drained', drained: false, calledAtMs: 0 };
    expect(propagationOf(synced, undrain, NOW)).toMatchObject({ overtaken: false });
  });
});
