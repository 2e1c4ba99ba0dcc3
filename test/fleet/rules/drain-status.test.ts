import { describe, expect, test } from 'vitest';
import { drainStatusOf } from '../../../src/fleet/rules/drain-status.ts';
import type { FleetState } from '../../../src/fleet/rules/fleet-state.ts';
import { HEARTBEAT_VALID_MS, STABLE_AFTER_MS } from '../../../src/fleet/timing.ts';
import type { Heartbeat } from '../../../src/fleet/wire-format.ts';
import {
  createStableState,
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

const statusOfX = (state: FleetState, nowMs = NOW) => drainStatusOf(state, 'x', 0, nowMs);

/** A stable gateway that has read one other gateway. */
const withOther = (members: Partial<Heartbeat> = {}) =>
  withRead(createStableState(), NOW, {
    snapshots: [snapshotOf(OTHER, 'gw-b')],
    heartbeats: [heartbeatOf(OTHER, members)],
  });

describe('a drained replica', () => {
  test('is safe to stop when the other gateway has applied the drain and has nothing in flight', () => {
    expect(statusOfX(withOther())).toEqual({ safeToStop: true, inflight: 0, unconfirmed: [] });
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
    expect(statusOfX(state)).toEqual({ safeToStop: false, inflight: 2, unconfirmed: [] });
    expect(drainStatusOf(state, 'x', 1, NOW).inflight).toBe(3);
  });

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
