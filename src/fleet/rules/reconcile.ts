import type { DrainState } from '#replicas/drain-state';
import { HEARTBEAT_TTL_MS, HEARTBEAT_VALID_MS } from '../timing.ts';
import type { Heartbeat, Snapshot } from '../wire-format.ts';
import { unawareOf } from './drain-status.ts';
import type { FleetState, Peer } from './fleet-state.ts';
import { forgetNames, type OwnNames } from './forget-names.ts';
import { LEAST_REST_MS, mergeLeft, pruneLeft, toCounts } from './left-work.ts';

/** What happened. */
export type FleetEvent =
  /** The store was read. */
  | ({ readonly kind: 'read' } & StoreRead)
  /** The store accepted the snapshot of this revision, in the sync that started at that time. */
  | { readonly kind: 'published'; readonly revision: number; readonly syncStartedAtMs: number }
  /** An operator drained or undrained a replica on this gateway. */
  | { readonly kind: 'changed'; readonly replica: string; readonly drain: DrainState }
  /** A drain state is applied here: the flag is set, the state is on disk, and every worker has confirmed it. */
  | { readonly kind: 'applied'; readonly replica: string; readonly version: string }
  /** A drain state could not be applied and must be tried again. */
  | { readonly kind: 'failed'; readonly replica: string; readonly version: string }
  /** Which names this gateway has, after a read. */
  | ({ readonly kind: 'looked' } & OwnNames)
  /** This gateway stops in order, and ceases to follow these responses, which count for at most so long. */
  | {
      readonly kind: 'leaving';
      readonly version: string;
      readonly background: NonNullable<Heartbeat['background']>;
      readonly restMs: number;
    }
  /** An operator says that gateways are gone for good. What they followed counts for at most so long. */
  | {
      readonly kind: 'removed';
      readonly ids: readonly string[];
      readonly version: string;
      readonly restMs: number;
    }
  /** Time has passed. */
  | { readonly kind: 'tick' };

/** What one sync has read. */
export interface StoreRead {
  /** When the sync started. What it read is no older. */
  readonly syncStartedAtMs: number;
  /** The revision of every snapshot in the store, by id. */
  readonly revisions: ReadonlyMap<string, number>;
  /** The snapshots that changed since the last read. */
  readonly snapshots: readonly Snapshot[];
  readonly heartbeats: readonly Heartbeat[];
  /** The id that this gateway takes if another gateway has forgotten it while it ran. */
  readonly newId: string;
}

/** What the caller must do. */
export type FleetEffect =
  /** Apply the drain state, then report `applied` or `failed`. */
  | { readonly kind: 'apply'; readonly replica: string; readonly drain: DrainState }
  /** No gateway has had replicas of these names for long: forget their drain states. */
  | { readonly kind: 'forget'; readonly replicas: readonly string[] }
  /** Write the id, the members and the removed ids to disk before the next heartbeat. */
  | { readonly kind: 'persist' };

/** The state after an event, and the effects to carry out. */
export interface ReconcileResult {
  readonly state: FleetState;
  readonly effects: readonly FleetEffect[];
}

/** The parts of the state that are in the snapshot, beside the members. */
const SHARED = ['drains', 'gone', 'forgotten', 'left'] as const;

/** Computes the state after an event. Pure: times are arguments, from the gateway's own monotonic clock. */
export function reconcile(before: FleetState, event: FleetEvent, nowMs: number): ReconcileResult {
  const reduced = reduce(before, event, nowMs);
  const after = noteUndrains(before, { ...reduced, left: pruneLeft(reduced.left, nowMs) }, nowMs);
  const hasNewMembership =
    after.id !== before.id || after.members !== before.members || after.removed !== before.removed;
  const hasChanged = hasNewMembership || SHARED.some((part) => after[part] !== before[part]);
  const state = hasChanged ? { ...after, revision: after.revision + 1 } : after;
  const applications = findApplicable(state, nowMs);
  const forgotten = [...after.forgotten.keys()].filter((name) => !before.forgotten.has(name));
  const started = applications.map(({ replica, drain }) => [replica, drain.version] as const);
  return {
    state: { ...state, applying: withEntries(state.applying, started) },
    effects: [
      ...(hasNewMembership ? [{ kind: 'persist' } as const] : []),
      ...(forgotten.length === 0 ? [] : [{ kind: 'forget', replicas: forgotten } as const]),
      ...applications,
    ],
  };
}

/** A repeated undrain keeps its first time: this gateway has not reported the replica as drained in between. */
function noteUndrains(before: FleetState, after: FleetState, nowMs: number): FleetState {
  if (after.drains === before.drains) return after;
  const undrained = [...after.drains].filter(
    ([replica, { drained }]) => !drained && before.drains.get(replica)?.drained !== false,
  );
  const times = undrained.map(([replica]) => [replica, nowMs] as const);
  return { ...after, undrainedAtMs: withEntries(after.undrainedAtMs, times) };
}

function reduce(state: FleetState, event: FleetEvent, nowMs: number): FleetState {
  switch (event.kind) {
    case 'read':
      return applyRead(state, event, nowMs);
    case 'looked':
      return forgetNames(state, event, nowMs);
    case 'leaving':
      return remove(leaveBehind(state, event, nowMs), [state.id]);
    case 'published':
      return {
        ...state,
        publishedRevision: Math.max(state.publishedRevision, event.revision),
        syncedAtMs: event.syncStartedAtMs,
      };
    case 'changed':
      return { ...state, drains: mergeDrains(state.drains, [[event.replica, event.drain]]) };
    case 'applied':
    case 'failed':
      return endApplying(state, event);
    case 'removed':
      return remove({ ...state, left: abandon(state, event, nowMs) }, event.ids);
    case 'tick':
      return state;
  }
}

function endApplying(
  state: FleetState,
  { kind, replica, version }: Extract<FleetEvent, { kind: 'applied' | 'failed' }>,
): FleetState {
  // A later state has overtaken this one.
  if (state.applying.get(replica) !== version) return state;
  const applying = new Map(state.applying);
  applying.delete(replica);
  return kind === 'failed'
    ? { ...state, applying }
    : { ...state, applying, applied: withEntries(state.applied, [[replica, version]]) };
}

/** What is left counts for the others until a process in the same state_dir goes on with it. */
function leaveBehind(
  state: FleetState,
  { version, background, restMs }: Extract<FleetEvent, { kind: 'leaving' }>,
  nowMs: number,
): FleetState {
  const counts = toCounts(background);
  if (counts.size === 0) return state;
  const { name, home } = state;
  const work = { version, name, counts, untilMs: nowMs + restMs + LEAST_REST_MS };
  return { ...state, left: withEntries(state.left, [[home, work]]) };
}

/** What the gateways followed by their last heartbeats, beside what is known to be left already. */
function abandon(
  { left, members, peers }: FleetState,
  { ids, version, restMs }: Extract<FleetEvent, { kind: 'removed' }>,
  nowMs: number,
): FleetState['left'] {
  const entries = ids.flatMap((id) => {
    const { snapshot, heartbeat } = peers.get(id) ?? UNREAD_PEER;
    const counts = toCounts(heartbeat?.background ?? new Map());
    if (counts.size === 0) return [];
    const name = members.get(id) ?? id;
    return [
      [snapshot?.home ?? id, { version, name, counts, untilMs: nowMs + restMs + LEAST_REST_MS }] as const,
    ];
  });
  return withEntries(left, entries);
}

function applyRead(state: FleetState, read: StoreRead, nowMs: number): FleetState {
  const { syncStartedAtMs, revisions, snapshots, heartbeats, newId } = read;
  const stored = revisions.get(state.id) ?? 0;
  const hasLost = stored < state.publishedRevision || stored > state.revision;
  const hasGap = state.readAtMs === null || syncStartedAtMs - state.readAtMs > HEARTBEAT_VALID_MS;
  const merged = remove(
    {
      ...state,
      readAtMs: syncStartedAtMs,
      readableSinceMs: hasGap ? syncStartedAtMs : state.readableSinceMs,
      publishedRevision: hasLost ? 0 : state.publishedRevision,
      syncedAtMs: hasLost ? null : state.syncedAtMs,
      members: mergeMembers(state.members, state.id, revisions, snapshots),
      drains: mergeDrains(
        state.drains,
        snapshots
          .flatMap((snapshot) => [...snapshot.drains])
          .filter(([replica, { version }]) => version > (state.forgotten.get(replica) ?? '')),
      ),
      left: mergeLeft(state, snapshots, nowMs),
      peers: readPeers(state, snapshots, heartbeats),
      heartbeatIds: new Set(heartbeats.map(({ id }) => id)),
    },
    snapshots.flatMap(({ removed }) => removed),
  );
  if (!merged.removed.includes(state.id)) return merged;
  // Another gateway has forgotten this one. With a new id it becomes a member again.
  return { ...merged, id: newId, publishedRevision: 0, syncedAtMs: null };
}

/** Adds the gateways that the store or a snapshot names. Returns the same map if there is no new one. */
function mergeMembers(
  members: ReadonlyMap<string, string>,
  ownId: string,
  revisions: ReadonlyMap<string, number>,
  snapshots: readonly Snapshot[],
): ReadonlyMap<string, string> {
  const named = snapshots.flatMap(({ id, name, members: theirs }) => [...theirs, [id, name] as const]);
  const known = new Map(members);
  for (const id of revisions.keys()) if (!known.has(id)) known.set(id, id); // its name is not known yet
  for (const [id, name] of named) if (!known.has(id) || known.get(id) === id) known.set(id, name);
  known.delete(ownId);
  const isSame = known.size === members.size && [...known].every(([id, name]) => members.get(id) === name);
  return isSame ? members : known;
}

function readPeers(
  state: FleetState,
  snapshots: readonly Snapshot[],
  heartbeats: readonly Heartbeat[],
): ReadonlyMap<string, Peer> {
  const peers = new Map(state.peers);
  for (const snapshot of snapshots.filter(({ id }) => id !== state.id)) {
    const known = peers.get(snapshot.id) ?? UNREAD_PEER;
    // After a failover the store may contain an older one.
    if (snapshot.revision > (known.snapshot?.revision ?? 0)) peers.set(snapshot.id, { ...known, snapshot });
  }
  for (const heartbeat of heartbeats.filter(({ id }) => id !== state.id)) {
    const known = peers.get(heartbeat.id) ?? UNREAD_PEER;
    if (heartbeat.number <= (known.heartbeat?.number ?? 0)) continue;
    const answered = state.sentHeartbeats.find(({ number }) => number === heartbeat.heard.get(state.id));
    const untilMs = answered === undefined ? Number.NEGATIVE_INFINITY : answered.atMs + HEARTBEAT_VALID_MS;
    const validUntilMs = Math.max(known.validUntilMs, untilMs);
    peers.set(heartbeat.id, { ...known, heartbeat, validUntilMs });
  }
  return peers;
}

const UNREAD_PEER: Peer = { snapshot: null, heartbeat: null, validUntilMs: Number.NEGATIVE_INFINITY };

/** More than a fleet replaces while one gateway is cut off. Beyond that, an operator has to forget that gateway. */
const MAX_REMOVED = 1_000;

function remove(state: FleetState, ids: readonly string[]): FleetState {
  const all = new Set([...state.removed, ...ids]);
  // Ids sort by time, so every gateway drops the same ones: the oldest.
  const kept = [...all].sort().slice(-MAX_REMOVED);
  const removed = kept.join() === state.removed.join() ? state.removed : kept;
  const isHere = ([id]: readonly [string, unknown]) => !all.has(id);
  const { members, peers } = state;
  return {
    ...state,
    removed,
    members: [...members].every(isHere) ? members : new Map([...members].filter(isHere)),
    peers: [...peers].every(isHere) ? peers : new Map([...peers].filter(isHere)),
  };
}

/** Last writer wins: keeps the drain state with the greater version. Returns the same map if nothing is newer. */
function mergeDrains(
  drains: ReadonlyMap<string, DrainState>,
  others: readonly (readonly [string, DrainState])[],
): ReadonlyMap<string, DrainState> {
  const merged = new Map(drains);
  for (const [replica, drain] of others) {
    if (drain.version > (merged.get(replica)?.version ?? '')) merged.set(replica, drain);
  }
  const isSame = [...merged].every(([replica, drain]) => drains.get(replica) === drain);
  return isSame ? drains : merged;
}

/** The drain states to apply now: a drain at once, an undrain when no gateway can still rely on the drain. */
function findApplicable(
  state: FleetState,
  nowMs: number,
): readonly Extract<FleetEffect, { kind: 'apply' }>[] {
  return [...state.drains].flatMap(([replica, drain]) => {
    const { drained, version } = drain;
    if (state.applied.get(replica) === version || state.applying.get(replica) === version) return [];
    if (!drained && isReliedOn(state, replica, version, nowMs)) return [];
    return [{ kind: 'apply', replica, drain } as const];
  });
}

/** Whether another gateway may still rely on the replica being drained everywhere. */
function isReliedOn(state: FleetState, replica: string, version: string, nowMs: number): boolean {
  const sinceMs = state.undrainedAtMs.get(replica) ?? Number.NEGATIVE_INFINITY;
  if (nowMs - sinceMs >= HEARTBEAT_TTL_MS) return false;
  return unawareOf(state, replica, version).length > 0;
}

function withEntries<V>(
  map: ReadonlyMap<string, V>,
  entries: readonly (readonly [string, V])[],
): ReadonlyMap<string, V> {
  return entries.length === 0 ? map : new Map([...map, ...entries]);
}
