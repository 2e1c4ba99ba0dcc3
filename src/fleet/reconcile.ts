import type { DrainState } from '../replicas/control/drains.ts';
import type { FleetState, Peer } from './fleet-state.ts';
import type { Beat, Ledger } from './sheets.ts';
import { unheardOf } from './standing.ts';
import { BELIEF_MS, PROMISE_MS } from './timing.ts';

/** What happened. */
export type FleetEvent =
  /** The sheets were read. */
  | ({ readonly kind: 'heard' } & Reading)
  /** The store took the ledger of this revision, after the reading that was asked for at that time. */
  | { readonly kind: 'pinned'; readonly revision: number; readonly askedAtMs: number }
  /** Somebody drained or undrained a replica here. */
  | { readonly kind: 'changed'; readonly replica: string; readonly drain: DrainState }
  /** A state is in force here: the flag is set, it is on disk, every worker has gone by. */
  | { readonly kind: 'enforced'; readonly replica: string; readonly version: string }
  /** It could not be put into force: to be tried again. */
  | { readonly kind: 'failed'; readonly replica: string; readonly version: string }
  /** Gateways are gone for good. */
  | { readonly kind: 'removed'; readonly ids: readonly string[] }
  /** Nothing but time passed. */
  | { readonly kind: 'passed' };

/** What one round has read. */
export interface Reading {
  /** When it was asked for: what was read is as old as that, or younger. */
  readonly askedAtMs: number;
  /** The revision of every ledger in the store, by id. */
  readonly revisions: ReadonlyMap<string, number>;
  /** The ledgers that changed since the last reading. */
  readonly ledgers: readonly Ledger[];
  readonly beats: readonly Beat[];
  /** What this gateway calls itself from now on, if its id was removed by mistake. */
  readonly freshId: string;
}

/** What is to be done. */
export type FleetEffect =
  /** Put the state into force; then say `enforced`, or `failed`. */
  | { readonly kind: 'enforce'; readonly replica: string; readonly drain: DrainState }
  /** Store id, members and removed ids before the next beat. */
  | { readonly kind: 'remember' };

/** A state, and what is to be done. */
export interface Outcome {
  readonly state: FleetState;
  readonly effects: readonly FleetEffect[];
}

/** What a gateway makes of an event. Pure: times come with the events, from the gateway's own monotonic clock. */
export function reconcile(before: FleetState, event: FleetEvent, nowMs: number): Outcome {
  const after = noteUndrains(before, take(before, event), nowMs);
  const isOther =
    after.id !== before.id || after.members !== before.members || after.removed !== before.removed;
  const isNews = isOther || after.drains !== before.drains;
  const state = isNews ? { ...after, revision: after.revision + 1 } : after;
  const enforcing = enforceable(state, nowMs);
  const begun = enforcing.map(({ replica, drain }) => [replica, drain.version] as const);
  return {
    state: { ...state, underway: put(state.underway, begun) },
    effects: [...(isOther ? [{ kind: 'remember' } as const] : []), ...enforcing],
  };
}

/** An undrain that repeats another one is known since that one: this gateway has not called it drained in between. */
function noteUndrains(before: FleetState, after: FleetState, nowMs: number): FleetState {
  if (after.drains === before.drains) return after;
  const undrained = [...after.drains].filter(
    ([replica, { drained }]) => !drained && before.drains.get(replica)?.drained !== false,
  );
  const times = undrained.map(([replica]) => [replica, nowMs] as const);
  return { ...after, undrainedAtMs: put(after.undrainedAtMs, times) };
}

function take(state: FleetState, event: FleetEvent): FleetState {
  switch (event.kind) {
    case 'heard':
      return hear(state, event);
    case 'pinned':
      return {
        ...state,
        pinnedRevision: Math.max(state.pinnedRevision, event.revision),
        sharedAtMs: event.askedAtMs,
      };
    case 'changed':
      return { ...state, drains: mergeDrains(state.drains, [[event.replica, event.drain]]) };
    case 'enforced':
    case 'failed':
      return endUnderway(state, event);
    case 'removed':
      return remove(state, event.ids);
    case 'passed':
      return state;
  }
}

function endUnderway(
  state: FleetState,
  { kind, replica, version }: Extract<FleetEvent, { kind: 'enforced' | 'failed' }>,
): FleetState {
  // A later state overtook it: that one's end counts.
  if (state.underway.get(replica) !== version) return state;
  const underway = new Map(state.underway);
  underway.delete(replica);
  return kind === 'failed'
    ? { ...state, underway }
    : { ...state, underway, inForce: put(state.inForce, [[replica, version]]) };
}

function hear(state: FleetState, reading: Reading): FleetState {
  const { askedAtMs, revisions, ledgers, beats, freshId } = reading;
  const stored = revisions.get(state.id) ?? 0;
  const hasLost = stored < state.pinnedRevision || stored > state.revision;
  const hasGap = state.heardAtMs === null || askedAtMs - state.heardAtMs > BELIEF_MS;
  const united = remove(
    {
      ...state,
      heardAtMs: askedAtMs,
      heardSinceMs: hasGap ? askedAtMs : state.heardSinceMs,
      pinnedRevision: hasLost ? 0 : state.pinnedRevision,
      sharedAtMs: hasLost ? null : state.sharedAtMs,
      members: unite(state.members, state.id, revisions, ledgers),
      drains: mergeDrains(
        state.drains,
        ledgers.flatMap((ledger) => [...ledger.drains]),
      ),
      peers: readPeers(state, ledgers, beats),
      beating: new Set(beats.map(({ id }) => id)),
    },
    ledgers.flatMap(({ removed }) => removed),
  );
  if (!united.removed.includes(state.id)) return united;
  // Somebody took this gateway for gone. Under a new id it has to be waited for again.
  return { ...united, id: freshId, pinnedRevision: 0, sharedAtMs: null };
}

/** The members with all those that the store or another ledger names. The same map if there is nobody new. */
function unite(
  members: ReadonlyMap<string, string>,
  ownId: string,
  revisions: ReadonlyMap<string, number>,
  ledgers: readonly Ledger[],
): ReadonlyMap<string, string> {
  const named = ledgers.flatMap(({ id, name, members: theirs }) => [...theirs, [id, name] as const]);
  const known = new Map(members);
  for (const id of revisions.keys()) if (!known.has(id)) known.set(id, id); // no name is known yet
  for (const [id, name] of named) if (!known.has(id) || known.get(id) === id) known.set(id, name);
  known.delete(ownId);
  const isSame = known.size === members.size && [...known].every(([id, name]) => members.get(id) === name);
  return isSame ? members : known;
}

function readPeers(
  state: FleetState,
  ledgers: readonly Ledger[],
  beats: readonly Beat[],
): ReadonlyMap<string, Peer> {
  const peers = new Map(state.peers);
  for (const ledger of ledgers.filter(({ id }) => id !== state.id)) {
    const known = peers.get(ledger.id) ?? UNHEARD;
    // After a failover the store may hold an older one.
    if (ledger.revision > (known.ledger?.revision ?? 0)) peers.set(ledger.id, { ...known, ledger });
  }
  for (const beat of beats.filter(({ id }) => id !== state.id)) {
    const known = peers.get(beat.id) ?? UNHEARD;
    if (beat.number <= (known.beat?.number ?? 0)) continue;
    const answered = state.sentBeats.find(({ number }) => number === beat.heard.get(state.id));
    const untilMs = answered === undefined ? Number.NEGATIVE_INFINITY : answered.atMs + BELIEF_MS;
    const believedUntilMs = Math.max(known.believedUntilMs, untilMs);
    peers.set(beat.id, { ...known, beat, believedUntilMs });
  }
  return peers;
}

const UNHEARD: Peer = { ledger: null, beat: null, believedUntilMs: Number.NEGATIVE_INFINITY };

/** More than a fleet can have replaced while one of its gateways is cut off; beyond, that one is to be forgotten. */
const MAX_REMOVED = 1_000;

function remove(state: FleetState, ids: readonly string[]): FleetState {
  const all = new Set([...state.removed, ...ids]);
  // The same ids are left out everywhere: the oldest, by their stamps.
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

/** Of two states of a replica the one with the greater version. The same map if there is nothing newer. */
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

/** What can be put into force now: every drain at once, an undrain when nobody can believe the drain any more. */
function enforceable(state: FleetState, nowMs: number): readonly Extract<FleetEffect, { kind: 'enforce' }>[] {
  return [...state.drains].flatMap(([replica, drain]) => {
    const { drained, version } = drain;
    if (state.inForce.get(replica) === version || state.underway.get(replica) === version) return [];
    if (!drained && isReliedOn(state, replica, version, nowMs)) return [];
    return [{ kind: 'enforce', replica, drain } as const];
  });
}

/** Whether somebody may still believe that the replica is drained everywhere. */
function isReliedOn(state: FleetState, replica: string, version: string, nowMs: number): boolean {
  const sinceMs = state.undrainedAtMs.get(replica) ?? Number.NEGATIVE_INFINITY;
  if (nowMs - sinceMs >= PROMISE_MS) return false;
  return unheardOf(state, replica, version).length > 0;
}

function put<V>(
  map: ReadonlyMap<string, V>,
  entries: readonly (readonly [string, V])[],
): ReadonlyMap<string, V> {
  return entries.length === 0 ? map : new Map([...map, ...entries]);
}
