import { describe, expect, test } from 'vitest';
import { createFleetState, type FleetState, nextHeartbeat } from '../../../src/fleet/rules/fleet-state.ts';
import {
  findVanished,
  isJoined,
  isStable,
  mayServeAlone,
  toGatewayStatuses,
} from '../../../src/fleet/rules/liveness.ts';
import { HEARTBEAT_TTL_MS, HEARTBEAT_VALID_MS, STABLE_AFTER_MS } from '../../../src/fleet/timing.ts';
import {
  createStableState,
  DRAIN,
  HOME,
  heartbeatOf,
  NEW_ID,
  NOW,
  OTHER,
  removalOf,
  SELF,
  snapshotOf,
  stampAt,
  stateAfter,
  THIRD,
  withRead,
} from '../model/states.ts';

describe('a new gateway', () => {
  const createNewcomer = (): FleetState => {
    const state = createFleetState({
      id: SELF,
      home: HOME,
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

  test.each<[string, (seen: FleetState) => FleetState]>([
    ['has not read the store', (seen) => ({ ...seen, readAtMs: null })],
    ['does not know since when it could', (seen) => ({ ...seen, readableSinceMs: null })],
    ['has not published its snapshot', (seen) => ({ ...seen, publishedRevision: 0 })],
    ['does not find its own heartbeat', (seen) => ({ ...seen, heartbeatIds: new Set([OTHER]) })],
    ['has not read the other one', (seen) => ({ ...seen, peers: new Map() })],
    [
      'has not applied a drain state that it read',
      (seen) => ({ ...seen, drains: new Map([['x', { ...DRAIN, version: stampAt(30) }]]) }),
    ],
  ])('does not serve while it %s', (_, change) => {
    const seen = withRead(createNewcomer(), 1_000, { snapshots, heartbeats: [own, heartbeatOf(OTHER)] });
    expect([isJoined(seen), isJoined(change(seen))]).toEqual([true, false]);
  });

  test.each<[string, Parameters<typeof withRead>[2]]>([
    [
      'has a newer snapshot than the one that was read',
      { snapshots, heartbeats: [own, heartbeatOf(OTHER, { revision: 2 })] },
    ],
    ['has a snapshot that was not read', { heartbeats: [own, heartbeatOf(OTHER)] }],
    ['has sent no heartbeat that could be read', { snapshots, heartbeats: [own] }],
  ])('waits for a gateway that %s', (_, read) => {
    const seen = withRead(createNewcomer(), 1_000, read);
    expect(isJoined({ ...seen, heartbeatIds: new Set([SELF, OTHER]) })).toBe(false);
  });

  test('does not wait for a gateway that was removed', () => {
    const seen = withRead(createNewcomer(), HEARTBEAT_TTL_MS, {
      heartbeats: [own, heartbeatOf(OTHER, { heard: new Map() })],
    });
    expect([isJoined(seen), isJoined({ ...seen, readableSinceMs: 0, removed: [OTHER] })]).toEqual([
      false,
      true,
    ]);
  });

  test('counts the time since the store could be read, not since its own start', () => {
    const late = withRead({ ...createNewcomer(), readableSinceMs: 4_000 }, 4_500, { heartbeats: [own] });
    expect(isJoined(late)).toBe(false);
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
      heartbeats: [heartbeatOf(OTHER, { inflight: new Map([['y', 4]]), version: '0.2.0' })],
    });
    expect(toGatewayStatuses(state, { inflight: 7, version: '0.1.0' }, NOW)).toEqual([
      { name: 'gw-a', id: SELF, isSelf: true, isAlive: true, inflight: 7, version: '0.1.0' },
      { name: 'gw-b', id: OTHER, isSelf: false, isAlive: true, inflight: 4, version: '0.2.0' },
      { name: 'gw-b', id: THIRD, isSelf: false, isAlive: false, inflight: null, version: null },
    ]);
  });

  test('are alive while their heartbeat is valid, and listed by name, then by id', () => {
    const members = new Map([
      [THIRD, 'gw-0'],
      [NEW_ID, 'gw-a'],
      [OTHER, 'gw-0'],
    ]);
    const state = withRead({ ...createStableState(), members }, NOW, { heartbeats: [heartbeatOf(OTHER)] });
    const aliveAt = (nowMs: number) =>
      toGatewayStatuses(state, { inflight: 0, version: null }, nowMs).map(({ id, isAlive }) => [id, isAlive]);
    const endMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
    expect(aliveAt(endMs - 1)).toEqual([
      [OTHER, true],
      [THIRD, false],
      [SELF, true],
      [NEW_ID, false],
    ]);
    expect(aliveAt(endMs)[0]).toEqual([OTHER, false]);
  });

  test('are neither alive nor not while the store cannot be read, or could not until just now', () => {
    const readAt = (state: FleetState, nowMs: number) => withRead(state, nowMs, { snapshots });
    const isAliveAt = (state: FleetState, nowMs: number) =>
      toGatewayStatuses(state, { inflight: 0, version: null }, nowMs).find(({ id }) => id === OTHER)?.isAlive;
    const state = readAt(createStableState(), NOW);
    expect(isAliveAt(state, NOW + HEARTBEAT_VALID_MS)).toBe(false);
    expect(isAliveAt(state, NOW + HEARTBEAT_VALID_MS + 1)).toBeNull();
    const back = readAt({ ...state, readableSinceMs: NOW + 60_000 }, NOW + 60_001);
    expect(isAliveAt(back, NOW + 60_001)).toBeNull();
  });

  test('that were never read can be forgotten', () => {
    const state = { ...createStableState(), members: new Map([[OTHER, 'gw-b']]) };
    expect(findVanished(state, 'gw-b', NOW)).toEqual([OTHER]);
  });

  test('have vanished when their heartbeat is not valid any more, and not before', () => {
    const read = withRead(createStableState(), NOW, { snapshots, heartbeats: [heartbeatOf(OTHER)] });
    const endMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
    const state = withRead(stateAfter(read, removalOf([THIRD]), NOW), endMs - 10, {});
    expect([endMs - 1, endMs].map((nowMs) => findVanished(state, 'gw-b', nowMs))).toEqual([
      'gateway_alive',
      [OTHER],
    ]);
  });

  test('can be forgotten by name if they have vanished', () => {
    const state = withRead(createStableState(), NOW, { snapshots, heartbeats: [heartbeatOf(OTHER)] });
    expect(findVanished(state, 'gw-b', NOW)).toEqual([THIRD]);
    const forgotten = stateAfter(state, removalOf([THIRD]), NOW);
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

test('the store is stable when it could be read for long enough, and was read a short time ago', () => {
  const state = createStableState();
  const endMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
  expect([endMs, endMs + 1].map((nowMs) => isStable(state, nowMs))).toEqual([true, false]);
  expect(isStable({ ...state, readableSinceMs: 1 }, endMs)).toBe(false);
  expect(isStable({ ...state, readAtMs: null }, 0)).toBe(false);
  expect(isStable({ ...state, readableSinceMs: null }, endMs)).toBe(false);
});

test('a gateway may serve alone when every earlier heartbeat has expired', () => {
  const state = createStableState();
  const mayServe = (readAtMs: number | null, nowMs: number) =>
    mayServeAlone({ ...state, readAtMs }, 100, nowMs);
  expect([99, 100].map((ms) => mayServe(null, HEARTBEAT_TTL_MS + ms))).toEqual([false, true]);
  expect([899, 900].map((ms) => mayServe(900, HEARTBEAT_TTL_MS + ms))).toEqual([false, true]);
});
