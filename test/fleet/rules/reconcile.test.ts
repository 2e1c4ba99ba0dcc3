import { describe, expect, test } from 'vitest';
import { createFleetState, type FleetState, nextHeartbeat } from '../../../src/fleet/rules/fleet-state.ts';
import { reconcile } from '../../../src/fleet/rules/reconcile.ts';
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

describe('a removed gateway', () => {
  test('does not return through a snapshot that still lists it', () => {
    const removed = stateAfter(createStableState(), removalOf([THIRD]), NOW);
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
    const state = stateAfter(createStableState(), removalOf(ids), NOW);
    expect(state.removed).toEqual(ids.slice(-1_000));
    const again = stateAfter(state, removalOf(ids.slice(0, 10)), NOW);
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

describe('the revision of a snapshot', () => {
  const revisionAfter = (event: Parameters<typeof stateAfter>[1]) => {
    const before = createStableState();
    return stateAfter(before, event, NOW).revision - before.revision;
  };

  test('grows with new drain states, members and removed gateways, and with nothing else', () => {
    const drain = { ...DRAIN, version: stampAt(20) };
    const read = { kind: 'read', syncStartedAtMs: NOW, heartbeats: [], newId: NEW_ID } as const;
    const own = [SELF, 1] as const;
    expect(revisionAfter({ kind: 'tick' })).toBe(0);
    expect(revisionAfter({ kind: 'changed', replica: 'x', drain: DRAIN })).toBe(0);
    expect(revisionAfter({ ...read, revisions: new Map([own]), snapshots: [] })).toBe(0);
    expect(revisionAfter({ kind: 'changed', replica: 'x', drain })).toBe(1);
    expect(revisionAfter(removalOf([THIRD]))).toBe(1);
    expect(revisionAfter({ ...read, revisions: new Map([own, [OTHER, 1]]), snapshots: [] })).toBe(1);
  });

  test('and what it tells of members is written to disk', () => {
    const before = withRead(createStableState(), NOW, { snapshots: [snapshotOf(OTHER, 'gw-b')] });
    const effectsOf = (state: FleetState, name: string) =>
      reconcile(
        state,
        {
          kind: 'read',
          syncStartedAtMs: NOW,
          heartbeats: [],
          newId: NEW_ID,
          revisions: new Map([
            [SELF, 1],
            [OTHER, 2],
          ]),
          snapshots: [snapshotOf(OTHER, name, { revision: 2 })],
        },
        NOW,
      ).effects;
    expect(effectsOf(before, 'gw-b')).toEqual([]);
    const nameless = { ...before, members: new Map([[OTHER, OTHER]]) };
    expect(effectsOf(nameless, 'gw-b')).toEqual([{ kind: 'persist' }]);
    expect(effectsOf(before, 'gw-renamed')).toEqual([]);
  });
});

describe('a read of the store', () => {
  const read = (state: FleetState, ownRevision: number | null, atMs = NOW) =>
    stateAfter(
      state,
      {
        kind: 'read',
        syncStartedAtMs: atMs,
        snapshots: [],
        heartbeats: [],
        newId: NEW_ID,
        revisions: new Map(ownRevision === null ? [] : [[SELF, ownRevision]]),
      },
      atMs,
    );
  const published = { ...createStableState(), revision: 3, publishedRevision: 2, syncedAtMs: 77 };

  test.each<[string, number | null, [number, number | null]]>([
    ['has what was published', 2, [2, 77]],
    ['has what was written just now', 3, [2, 77]],
    ['has an older one', 1, [0, null]],
    ['has none', null, [0, null]],
    ['has one that was never written', 4, [0, null]],
  ])('that %s tells whether the snapshot is to be written again', (_, revision, expected) => {
    const { publishedRevision, syncedAtMs } = read(published, revision);
    expect([publishedRevision, syncedAtMs]).toEqual(expected);
  });

  test('begins anew to be readable after a gap', () => {
    const sinceAt = (atMs: number) => read(published, 2, atMs).readableSinceMs;
    const lastMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
    expect([sinceAt(lastMs), sinceAt(lastMs + 1)]).toEqual([0, lastMs + 1]);
  });

  test('takes the later of two snapshots and heartbeats of a gateway, and none of its own', () => {
    const later = snapshotOf(OTHER, 'gw-b', { revision: 5 });
    const known = withRead(createStableState(), NOW, {
      snapshots: [
        later,
        snapshotOf(OTHER, 'gw-b', { revision: 4 }),
        snapshotOf(SELF, 'gw-a', { revision: 9 }),
      ],
      heartbeats: [heartbeatOf(OTHER, { number: 2 }), heartbeatOf(SELF)],
    });
    expect([...known.peers.keys()]).toEqual([OTHER]);
    const again = withRead(known, NOW, {
      snapshots: [{ ...later, removed: [] }],
      heartbeats: [heartbeatOf(OTHER, { number: 2, inflight: new Map([['x', 9]]) })],
    });
    expect(again.peers.get(OTHER)?.snapshot).toBe(later);
    expect(again.peers.get(OTHER)?.heartbeat?.inflight.size).toBe(0);
    expect(again.peers.get(OTHER)?.heartbeat).toBe(known.peers.get(OTHER)?.heartbeat);
  });

  test('changes nothing of a drain state that is older or the same', () => {
    const before = createStableState();
    const older = { ...DRAIN, drained: false, version: stampAt(9) };
    const snapshots = [
      snapshotOf(OTHER, 'gw-b', { drains: new Map([['x', older]]) }),
      snapshotOf(THIRD, 'gw-c', { drains: new Map([['x', { ...DRAIN }]]) }),
    ];
    expect(withRead(before, NOW, { snapshots }).drains).toBe(before.drains);
  });
});

test('a removed gateway is forgotten alone', () => {
  const known = withRead(createStableState(), NOW, {
    snapshots: [snapshotOf(OTHER, 'gw-b'), snapshotOf(THIRD, 'gw-c')],
    heartbeats: [heartbeatOf(OTHER), heartbeatOf(THIRD)],
  });
  const { peers, members } = stateAfter(known, removalOf([THIRD]), NOW);
  expect([[...peers.keys()], [...members.keys()]]).toEqual([[OTHER], [OTHER]]);
});

describe('a heartbeat', () => {
  test('tells of the drains that are applied, not of undrains', () => {
    const undrained = { ...DRAIN, drained: false, version: stampAt(20) };
    const state = {
      ...createStableState(),
      drains: new Map([['x', undrained]]),
      applied: new Map([['x', stampAt(20)]]),
    };
    expect(nextHeartbeat(state, new Map(), NOW).heartbeat.drained.size).toBe(0);
  });

  test('acknowledges those of the members that were heard', () => {
    const members = new Map([
      [OTHER, 'gw-b'],
      [THIRD, 'gw-c'],
    ]);
    const state = withRead({ ...createStableState(), members }, NOW, {
      heartbeats: [heartbeatOf(OTHER, { number: 4 })],
    });
    expect(nextHeartbeat(state, new Map(), NOW).heartbeat.heard).toEqual(new Map([[OTHER, 4]]));
  });

  test('is remembered while an acknowledgement of it can still count', () => {
    const first = createStableState();
    const sentAt = (nowMs: number) => nextHeartbeat(first, new Map(), nowMs).state.sentHeartbeats.length;
    const endMs = STABLE_AFTER_MS + HEARTBEAT_VALID_MS;
    expect([sentAt(endMs - 1), sentAt(endMs)]).toEqual([2, 1]);
  });
});

test('a drain is applied at once, and an undrain of an earlier process too', () => {
  const known = withRead(createStableState(), NOW, { snapshots: [snapshotOf(OTHER, 'gw-b')] });
  const effectsOf = (state: FleetState) => reconcile(state, { kind: 'tick' }, NOW).effects;
  const undrained = new Map([['x', { ...DRAIN, drained: false, version: stampAt(20) }]]);
  expect(effectsOf({ ...known, drains: undrained })).toHaveLength(1);
  const drained = { ...known, drains: new Map([['y', DRAIN]]), undrainedAtMs: new Map([['y', NOW]]) };
  expect(effectsOf({ ...drained, peers: new Map() })).toHaveLength(1);
});

test('a drain leaves the time of an earlier undrain alone', () => {
  const { undrainedAtMs } = stateAfter(
    createStableState(),
    { kind: 'changed', replica: 'x', drain: { ...DRAIN, version: stampAt(20) } },
    NOW,
  );
  expect(undrainedAtMs.size).toBe(0);
});

test('a gateway begins with revision 1, which is not published', () => {
  const state = createFleetState({
    id: SELF,
    home: HOME,
    name: 'gw-a',
    members: new Map(),
    removed: [],
    drains: new Map(),
  });
  expect([state.revision, state.publishedRevision]).toEqual([1, 0]);
});

test('an undrain of a replica that was never drained here waits for a gateway that may not know of it', () => {
  const known = withRead(createStableState(), NOW, { snapshots: [snapshotOf(OTHER, 'gw-b')] });
  const drain = { ...DRAIN, drained: false, version: stampAt(20) };
  const undrained = stateAfter(known, { kind: 'changed', replica: 'y', drain }, NOW);
  const appliedAt = (nowMs: number) => reconcile(undrained, { kind: 'tick' }, nowMs).effects.length;
  expect([NOW, NOW + HEARTBEAT_TTL_MS - 1, NOW + HEARTBEAT_TTL_MS].map(appliedAt)).toEqual([0, 0, 1]);
});
