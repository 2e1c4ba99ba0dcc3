import type { DrainState } from '../replicas/control/drains.ts';
import type { Beat, Ledger } from './sheets.ts';
import { BELIEF_MS } from './timing.ts';

/** What was last read of another gateway. */
export interface Peer {
  readonly ledger: Ledger | null;
  readonly beat: Beat | null;
  /** Until when that beat is believed, on this gateway's monotonic clock. */
  readonly believedUntilMs: number;
}

/** Everything one gateway knows of its fleet. Times are on its own monotonic clock. */
export interface FleetState {
  readonly id: string;
  readonly name: string;
  /** Of this gateway's ledger: grows with every change of what it says. */
  readonly revision: number;
  /** The revision that the store is known to have taken; 0: none. */
  readonly pinnedRevision: number;
  /** When the last round that read the store and then wrote to it was asked for; null: none, or what it wrote is lost. */
  readonly sharedAtMs: number | null;
  readonly beatNumber: number;
  /** When the latest beats were sent, oldest first: those whose answers can still be believed. */
  readonly sentBeats: readonly { readonly number: number; readonly atMs: number }[];
  /** The names of the other gateways, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** Ids that are gone for good. Sorted. */
  readonly removed: readonly string[];
  /** The latest drain state of each replica's name, from whichever gateway it is. */
  readonly drains: ReadonlyMap<string, DrainState>;
  /** By replica's name, the version that is in force in this gateway. */
  readonly inForce: ReadonlyMap<string, string>;
  /** By replica's name, the version that is being put into force. */
  readonly underway: ReadonlyMap<string, string>;
  /** By replica's name, since when its present undrain is known here. */
  readonly undrainedAtMs: ReadonlyMap<string, number>;
  /** What was read of the members, by id. */
  readonly peers: ReadonlyMap<string, Peer>;
  /** Whose beats there were at the last reading, this gateway's among them. */
  readonly beating: ReadonlySet<string>;
  /** When the last reading that succeeded was asked for; null: none did. */
  readonly heardAtMs: number | null;
  /** The first such reading since which there was no gap. */
  readonly heardSinceMs: number | null;
}

/** What a gateway knows when its process starts. */
export interface Beginning {
  readonly id: string;
  readonly name: string;
  /** From an earlier run in the same state_dir. */
  readonly members: ReadonlyMap<string, string>;
  /** Among them the ids of that run. */
  readonly removed: readonly string[];
  /** The states that this process starts with, in force from its first request on. */
  readonly drains: ReadonlyMap<string, DrainState>;
}

/** The state at the start of a process. */
export function beginFleet({ id, name, members, removed, drains }: Beginning): FleetState {
  return {
    ...{ id, name, members, removed, drains },
    revision: 1,
    pinnedRevision: 0,
    sharedAtMs: null,
    beatNumber: 0,
    sentBeats: [],
    inForce: new Map([...drains].map(([replica, { version }]) => [replica, version])),
    underway: new Map(),
    undrainedAtMs: new Map(),
    peers: new Map(),
    beating: new Set(),
    heardAtMs: null,
    heardSinceMs: null,
  };
}

/** This gateway's ledger. */
export function toLedger({ id, name, revision, members, removed, drains }: FleetState): Ledger {
  return { id, name, revision, members, removed, drains };
}

/**
 * This gateway's next beat, and the state after it. `inflight` was counted after the state's last change: what
 * begins later begins on replicas that the beat does not call drained.
 */
export function composeBeat(
  state: FleetState,
  inflight: ReadonlyMap<string, number>,
  nowMs: number,
): { readonly state: FleetState; readonly beat: Beat } {
  const number = state.beatNumber + 1;
  const drained = new Map(
    [...state.drains].flatMap(([replica, { drained: isDrained, version }]) =>
      isDrained && state.inForce.get(replica) === version ? [[replica, version] as const] : [],
    ),
  );
  const heard = new Map(
    [...state.members.keys()].flatMap((id) => {
      const beat = state.peers.get(id)?.beat;
      return beat == null ? [] : [[id, beat.number] as const];
    }),
  );
  return {
    beat: { id: state.id, number, revision: state.revision, heard, drained, inflight },
    state: {
      ...state,
      beatNumber: number,
      sentBeats: [...state.sentBeats.filter(({ atMs }) => nowMs - atMs < BELIEF_MS), { number, atMs: nowMs }],
    },
  };
}
