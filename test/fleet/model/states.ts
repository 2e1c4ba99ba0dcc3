import { nextLogicalTimestamp } from '#replicas/drain-state';
import { createFleetState, type FleetState, nextHeartbeat } from '../../../src/fleet/rules/fleet-state.ts';
import { type FleetEvent, reconcile } from '../../../src/fleet/rules/reconcile.ts';
import { STABLE_AFTER_MS } from '../../../src/fleet/timing.ts';
import type { Heartbeat, Snapshot } from '../../../src/fleet/wire-format.ts';

/** A stamp of this time. */
export const stampAt = (epochMs: number) => nextLogicalTimestamp('', epochMs, '0123456789ab');

/** The ids of three gateways, and one that a forgotten gateway takes. */
export const [SELF, OTHER, THIRD, NEW_ID] = [1, 2, 3, 4].map(stampAt) as [string, string, string, string];

/** The home of the first gateway. */
export const HOME = stampAt(0);

/** An operator forgets these gateways. */
export const removalOf = (ids: readonly string[]) =>
  ({ kind: 'removed', ids, version: NEW_ID, restMs: 0 }) as const;

/** A drain of replica `x`. */
export const DRAIN = { drained: true, since: null, reason: null, version: stampAt(10) };

/** A time at which `createStableState` is stable and its last heartbeat is recent. */
export const NOW = STABLE_AFTER_MS + 100;

/** A gateway that could read the store from 0 to `STABLE_AFTER_MS`, sent a heartbeat then, and has drained `x`. */
export function createStableState(): FleetState {
  const drains = new Map([['x', DRAIN]]);
  let state = createFleetState({
    id: SELF,
    name: 'gw-a',
    home: HOME,
    members: new Map(),
    removed: [],
    drains,
  });
  for (const atMs of [0, STABLE_AFTER_MS]) state = withRead(state, atMs, {});
  return nextHeartbeat({ ...state, publishedRevision: state.revision }, new Map(), STABLE_AFTER_MS).state;
}

/** The state after an event. */
export const stateAfter = (state: FleetState, event: FleetEvent, nowMs: number) =>
  reconcile(state, event, nowMs).state;

/** The state after a read that found these messages. */
export function withRead(
  state: FleetState,
  syncStartedAtMs: number,
  {
    snapshots = [],
    heartbeats = [],
  }: { readonly snapshots?: readonly Snapshot[]; readonly heartbeats?: readonly Heartbeat[] },
): FleetState {
  const own = [state.id, state.publishedRevision] as const;
  const revisions = new Map([own, ...snapshots.map(({ id, revision }) => [id, revision] as const)]);
  return stateAfter(
    state,
    { kind: 'read', syncStartedAtMs, revisions, snapshots, heartbeats, newId: NEW_ID },
    syncStartedAtMs,
  );
}

/** A snapshot of a gateway that knows that `x` is drained. */
export function snapshotOf(id: string, name: string, members: Partial<Snapshot> = {}): Snapshot {
  return {
    id,
    name,
    revision: 1,
    members: new Map(),
    removed: [],
    drains: new Map([['x', DRAIN]]),
    ...members,
  };
}

/** A heartbeat that acknowledges one of `SELF` and says that `x` is drained. */
export function heartbeatOf(id: string, members: Partial<Heartbeat> = {}): Heartbeat {
  return {
    id,
    number: 1,
    revision: 1,
    heard: new Map([[SELF, 1]]),
    drained: new Map([['x', DRAIN.version]]),
    inflight: new Map(),
    ...members,
  };
}
