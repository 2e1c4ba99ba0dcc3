import { describe, expect, test } from 'vitest';
import { type FleetState, nextHeartbeat } from '../../../src/fleet/rules/fleet-state.ts';
import { reconcile } from '../../../src/fleet/rules/reconcile.ts';
import { HEARTBEAT_TTL_MS } from '../../../src/fleet/timing.ts';
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

describe('a removed gateway', () => {
  test('does not return through a snapshot that still lists it', () => {
    const removed = stateAfter(createStableState(), { kind: 'removed', ids: [THIRD] }, NOW);
    const snapshots = [snapshotOf(OTHER, 'gw-b', { members: new Map([[THIRD, 'gw-c']]) })];
    expect([...withRead(removed, NOW, { snapshots }).members.keys()]).toEqual([OTHER]);
  });

  test('takes a new id if it still runs', () => {
    const snapshots = [snapshotOf(OTHER, 'gw-b', { removed: [SELF] })];
    const { state, effects } = reconcile(
      createStableState(),
      { kind: 'read', syncStartedAtMs: NOW, revisions: new Map(), snapshots, heartbeats: [], newId: NEW_ID },
      NOW,
    );
    expect({ id: state.id, published: state.publishedRevision, effects }).toEqual({
      id: NEW_ID,
      published: 0,
      effects: [{ kind: 'persist' }],
    });
  });

  test('is remembered as removed until a thousand later ones are', () => {
    const ids = Array.from({ length: 1_200 }, (_, index) => stampAt(1_000 + index));
    const state = stateAfter(createStableState(), { kind: 'removed', ids }, NOW);
    expect(state.removed).toEqual(ids.slice(-1_000));
    const again = stateAfter(state, { kind: 'removed', ids: ids.slice(0, 10) }, NOW);
    expect([again.removed, again.revision]).toEqual([state.removed, state.revision]);
  });
});

describe('a drain state that is being applied', () => {
  const drainY = (at: number) =>
    ({ kind: 'changed', replica: 'y', drain: { ...DRAIN, version: stampAt(at) } }) as const;

  test('is not reported as applied when an older one that it overtook is', () => {
    const drained = stateAfter(createStableState(), drainY(20), NOW);
    const again = stateAfter(drained, drainY(21), NOW);
    const { state: ended, effects } = reconcile(
      again,
      { kind: 'applied', replica: 'y', version: stampAt(20) },
      NOW,
    );
    expect(effects).toEqual([]);
    expect(nextHeartbeat(ended, new Map(), NOW).heartbeat.drained.has('y')).toBe(false);
    const both = stateAfter(ended, { kind: 'applied', replica: 'y', version: stampAt(21) }, NOW);
    expect(nextHeartbeat(both, new Map(), NOW).heartbeat.drained.get('y')).toBe(stampAt(21));
  });

  test('is tried again after it has failed', () => {
    const { state, effects } = reconcile(createStableState(), drainY(20), NOW);
    expect(effects).toMatchObject([{ kind: 'apply', replica: 'y' }]);
    expect(reconcile(state, { kind: 'tick' }, NOW).effects).toEqual([]);
    const failed = reconcile(state, { kind: 'failed', replica: 'y', version: stampAt(20) }, NOW);
    expect(failed.effects).toMatchObject([{ kind: 'apply', replica: 'y' }]);
  });
});

test('a repeated undrain is applied as soon as the first one may be', () => {
  const known = withRead(createStableState(), NOW, {
    snapshots: [snapshotOf(OTHER, 'gw-b')],
    heartbeats: [heartbeatOf(OTHER)],
  });
  const undrain = (state: FleetState, at: number, nowMs: number) => {
    const drain = { ...DRAIN, drained: false, version: stampAt(at) };
    return stateAfter(state, { kind: 'changed', replica: 'x', drain }, nowMs);
  };
  const repeated = undrain(undrain(known, 20, NOW), 21, NOW + HEARTBEAT_TTL_MS - 1);
  expect(repeated.applying.has('x')).toBe(false);
  const { effects } = reconcile(repeated, { kind: 'tick' }, NOW + HEARTBEAT_TTL_MS);
  expect(effects).toMatchObject([{ kind: 'apply', drain: { version: stampAt(21) } }]);
});
