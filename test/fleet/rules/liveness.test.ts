import { describe, expect, test } from 'vitest';
import { createFleetState, type FleetState, nextHeartbeat } from '../../../src/fleet/rules/fleet-state.ts';
import { findVanished, isJoined, toGatewayStatuses } from '../../../src/fleet/rules/liveness.ts';
import { HEARTBEAT_TTL_MS, HEARTBEAT_VALID_MS } from '../../../src/fleet/timing.ts';
import {
  createStableState,
  heartbeatOf,
  NOW,
  OTHER,
  SELF,
  snapshotOf,
  stateAfter,
  THIRD,
  withRead,
} from '../model/states.ts';

describe('a new gateway', () => {
  const createNewcomer = (): FleetState => {
    const state = createFleetState({
      id: SELF,
      name: 'gw-a',
      members: new Map(),
      removed: [],
      drains: new Map(),
    });
    return nextHeartbeat({ ...withRead(state, 0, {}), publishedRevision: 1 }, new Map(), 0).state;
  };
  const own = heartbeatOf(SELF, { drained: new Map(), heard: new Map() });
  const snapshots = [
    snapshotOf(OTHER, 'gw-b', { drains: new Map() }),
    snapshotOf(THIRD, 'gw-c', { drains: new Map() }),
  ];

  test('serves when every gateway with a heartbeat has acknowledged it', () => {
    const seen = withRead(createNewcomer(), 1_000, {
      snapshots,
      heartbeats: [own, heartbeatOf(OTHER), heartbeatOf(THIRD, { heard: new Map() })],
    });
    expect(isJoined(seen)).toBe(false);
    const heartbeats = [own, heartbeatOf(OTHER), heartbeatOf(THIRD, { number: 2 })];
    expect(isJoined(withRead(seen, 2_000, { snapshots, heartbeats }))).toBe(true);
  });

  test('does not wait for a gateway that has vanished', () => {
    const heartbeats = [own, heartbeatOf(OTHER)];
    expect(isJoined(withRead(createNewcomer(), 1_000, { snapshots, heartbeats }))).toBe(true);
  });

  test('that finds no other gateway waits until those that lost the store could be back', () => {
    const alone = withRead(createNewcomer(), 4_000, { heartbeats: [own] });
    expect(isJoined(alone)).toBe(false);
    expect(isJoined(withRead(alone, HEARTBEAT_TTL_MS, { heartbeats: [own] }))).toBe(true);
  });
});

describe('the members of a fleet', () => {
  const snapshots = [snapshotOf(OTHER, 'gw-b'), snapshotOf(THIRD, 'gw-b')];

  test('are listed, including those that have vanished', () => {
    const state = withRead(createStableState(), NOW, {
      snapshots,
      heartbeats: [heartbeatOf(OTHER, { inflight: new Map([['y', 4]]) })],
    });
    expect(toGatewayStatuses(state, 7, NOW)).toEqual([
      { name: 'gw-a', id: SELF, isSelf: true, isAlive: true, inflight: 7 },
      { name: 'gw-b', id: OTHER, isSelf: false, isAlive: true, inflight: 4 },
      { name: 'gw-b', id: THIRD, isSelf: false, isAlive: false, inflight: null },
    ]);
  });

  test('can be forgotten by name if they have vanished', () => {
    const state = withRead(createStableState(), NOW, { snapshots, heartbeats: [heartbeatOf(OTHER)] });
    expect(findVanished(state, 'gw-b', NOW)).toEqual([THIRD]);
    const forgotten = stateAfter(state, { kind: 'removed', ids: [THIRD] }, NOW);
    expect([...forgotten.members.keys()]).toEqual([OTHER]);
    expect(findVanished(forgotten, 'gw-b', NOW)).toBe('gateway_alive');
  });

  test('cannot be forgotten while they send heartbeats, nor by a gateway that cannot read the store', () => {
    const silent = withRead(createStableState(), NOW, {
      snapshots: [snapshotOf(OTHER, 'gw-b')],
      heartbeats: [heartbeatOf(OTHER, { heard: new Map() })],
    });
    expect(findVanished(silent, 'gw-b', NOW)).toBe('gateway_alive');
    expect(findVanished(silent, 'gw-b', NOW + HEARTBEAT_VALID_MS + 1)).toBe('fleet_unreachable');
    expect(findVanished(silent, 'gw-a', NOW)).toBe('gateway_alive');
    expect(findVanished(silent, 'gw-x', NOW)).toBe('gateway_not_found');
  });
});
