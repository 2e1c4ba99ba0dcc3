import type { DrainState } from '#replicas/drain-state';
import { HEARTBEAT_VALID_MS } from '../timing.ts';
import type { Heartbeat, Snapshot } from '../wire-format.ts';
import { type LeftByHome, toLeftReports } from './left-work.ts';

/** What was last read from another gateway. */
export interface Peer {
  readonly snapshot: Snapshot | null;
  readonly heartbeat: Heartbeat | null;
  /** When the heartbeat stops being valid, on this gateway's monotonic clock. */
  readonly validUntilMs: number;
}

/** Everything one gateway knows about its fleet. Times are on its own monotonic clock. */
export interface FleetState {
  readonly id: string;
  readonly name: string;
  /** The logical timestamp of its state_dir: the same for each process in it. */
  readonly home: string;
  /** The revision of this gateway's snapshot: grows with every change of its content. */
  readonly revision: number;
  /** The last revision that the store is known to have accepted; 0 if none. */
  readonly publishedRevision: number;
  /** When the last sync that read and then wrote the store started; null if none, or if the store lost what it wrote. */
  readonly syncedAtMs: number | null;
  readonly heartbeatNumber: number;
  /** When recent heartbeats were sent, oldest first: those whose acknowledgement can still make a heartbeat valid. */
  readonly sentHeartbeats: readonly { readonly number: number; readonly atMs: number }[];
  /** The names of the other gateways, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** The ids of gateways that are gone for good. Sorted. */
  readonly removed: readonly string[];
  /** The latest known drain state of each replica, by name, whichever gateway it came from. */
  readonly drains: ReadonlyMap<string, DrainState>;
  /** The names in `drains` that this gateway does not have: since when, in RFC 3339. */
  readonly gone: ReadonlyMap<string, string>;
  /** By name: the state with this version, and every earlier one, is forgotten. */
  readonly forgotten: ReadonlyMap<string, string>;
  /** What gateways that have stopped followed. */
  readonly left: LeftByHome;
  /** By replica name: the version that this gateway has applied. */
  readonly applied: ReadonlyMap<string, string>;
  /** By replica name: the version that this gateway is applying. */
  readonly applying: ReadonlyMap<string, string>;
  /** By replica name: when this gateway learned of its current undrain. */
  readonly undrainedAtMs: ReadonlyMap<string, number>;
  /** What was read from the other members, by id. */
  readonly peers: ReadonlyMap<string, Peer>;
  /** The ids of all heartbeats in the last read, including this gateway's own. */
  readonly heartbeatIds: ReadonlySet<string>;
  /** When the last successful read started; null if there was none. */
  readonly readAtMs: number | null;
  /** When the first read started that no gap separates from the last one. */
  readonly readableSinceMs: number | null;
}

/** What a gateway knows when its process starts. */
export interface InitialState {
  readonly id: string;
  readonly name: string;
  readonly home: string;
  /** From an earlier run with the same state_dir. */
  readonly members: ReadonlyMap<string, string>;
  /** Includes the id of that run. */
  readonly removed: readonly string[];
  /** The drain states that this process starts with. They apply from its first request on. */
  readonly drains: ReadonlyMap<string, DrainState>;
}

/** Creates the state at the start of a process. */
export function createFleetState({ id, name, home, members, removed, drains }: InitialState): FleetState {
  return {
    id,
    name,
    home,
    members,
    removed,
    drains,
    gone: new Map(),
    forgotten: new Map(),
    left: new Map(),
    revision: 1,
    publishedRevision: 0,
    syncedAtMs: null,
    heartbeatNumber: 0,
    sentHeartbeats: [],
    applied: new Map([...drains].map(([replica, { version }]) => [replica, version])),
    applying: new Map(),
    undrainedAtMs: new Map(),
    peers: new Map(),
    heartbeatIds: new Set(),
    readAtMs: null,
    readableSinceMs: null,
  };
}

/** Returns this gateway's snapshot as it is now. */
export function toSnapshot(
  { id, name, home, revision, members, removed, drains, gone, forgotten, left }: FleetState,
  nowMs: number,
): Snapshot {
  return {
    id,
    name,
    home,
    revision,
    members,
    removed,
    drains,
    ...(gone.size === 0 ? {} : { gone }),
    ...(forgotten.size === 0 ? {} : { forgotten }),
    ...(left.size === 0 ? {} : { left: toLeftReports(left, nowMs) }),
  };
}

/**
 * Returns this gateway's next heartbeat and the state after it. `inflight` must have been counted after the last change
 * of the state: later requests start only on replicas that the heartbeat does not list as drained.
 */
export function nextHeartbeat(
  state: FleetState,
  inflight: ReadonlyMap<string, number>,
  nowMs: number,
): { readonly state: FleetState; readonly heartbeat: Heartbeat } {
  const number = state.heartbeatNumber + 1;
  const drained = new Map(
    [...state.drains].flatMap(([replica, { drained: isDrained, version }]) =>
      isDrained && state.applied.get(replica) === version ? [[replica, version] as const] : [],
    ),
  );
  const heard = new Map(
    [...state.members.keys()].flatMap((id) => {
      const heartbeat = state.peers.get(id)?.heartbeat;
      return heartbeat == null ? [] : [[id, heartbeat.number] as const];
    }),
  );
  return {
    heartbeat: { id: state.id, number, revision: state.revision, heard, drained, inflight },
    state: {
      ...state,
      heartbeatNumber: number,
      sentHeartbeats: [
        ...state.sentHeartbeats.filter(({ atMs }) => nowMs - atMs < HEARTBEAT_VALID_MS),
        { number, atMs: nowMs },
      ],
    },
  };
}
