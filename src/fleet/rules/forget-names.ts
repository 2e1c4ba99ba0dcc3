import type { DrainState } from '#replicas/drain-state';
import type { FleetState } from './fleet-state.ts';
import { isStable } from './liveness.ts';

/** Which names this gateway has, from its configuration and what it finds. */
export interface OwnNames {
  /** The names that it remembers and does not have: since when, in RFC 3339. */
  readonly gone: ReadonlyMap<string, string>;
  readonly isPresent: (name: string) => boolean;
  readonly nowEpochMs: number;
  /** How long a name that is gone is remembered. */
  readonly keptMs: number;
  /** A logical timestamp that is greater than this one. */
  readonly newStamp: (after: string) => string;
}

/**
 * Forgets the names that every gateway has been without for so long. A gateway forgets one state of a name, by its
 * version, and only when the last snapshot of each gateway that it knows says the same: so one that has the name, is of
 * an earlier version or was never read keeps it everywhere. It ignores that state for as long as another still has it.
 * A gateway that got the name back meanwhile gives its state a new version.
 */
export function forgetNames(state: FleetState, own: OwnNames, nowMs: number): FleetState {
  const { gone, drains, forgotten } = noteOwn(state, own);
  const names = isStable(state, nowMs)
    ? [...gone.keys()].filter((name) => isForgettable(state, { name, drains, gone }, own))
    : [];
  if (names.length === 0 && forgotten === state.forgotten) return { ...state, gone, drains };
  const without = <V>(map: ReadonlyMap<string, V>) =>
    names.length === 0 ? map : new Map([...map].filter(([name]) => !names.includes(name)));
  const versions = names.flatMap((name) => {
    const version = drains.get(name)?.version;
    return version === undefined ? [] : [[name, version] as const];
  });
  return {
    ...state,
    gone: without(gone),
    drains: without(drains),
    applied: without(state.applied),
    undrainedAtMs: without(state.undrainedAtMs),
    forgotten: new Map([...forgotten, ...versions]),
  };
}

/**
 * Notes what is gone here, gives states that others have forgotten and that are meant here a new version, and drops what
 * no other gateway needs to be told any more.
 */
function noteOwn(state: FleetState, own: OwnNames): Pick<FleetState, 'gone' | 'drains' | 'forgotten'> {
  const gone = new Map([...own.gone].filter(([name]) => state.drains.has(name)));
  const isSame =
    gone.size === state.gone.size && [...gone].every(([name, at]) => state.gone.get(name) === at);
  const revived = [...state.drains].flatMap(([name, drain]) => {
    const version = forgottenElsewhere(state, name);
    const isMeant = version >= drain.version && own.isPresent(name);
    return isMeant ? [[name, { ...drain, version: own.newStamp(version) }] as const] : [];
  });
  const needed = [...state.forgotten].filter(([name, version]) => isNeeded(state, name, version));
  return {
    gone: isSame ? state.gone : gone,
    drains: revived.length === 0 ? state.drains : new Map([...state.drains, ...revived]),
    forgotten: needed.length === state.forgotten.size ? state.forgotten : new Map(needed),
  };
}

/** The greatest version of a name that another gateway has forgotten; `''`: none. */
function forgottenElsewhere({ peers }: FleetState, name: string): string {
  let latest = '';
  for (const { snapshot } of peers.values()) {
    const version = snapshot?.forgotten?.get(name) ?? '';
    if (version > latest) latest = version;
  }
  return latest;
}

/** Whether some gateway may still have this state of a name, and could bring it back. */
function isNeeded({ members, peers, drains }: FleetState, name: string, version: string): boolean {
  if (drains.has(name)) return false; // a later state, which holds
  return [...members.keys()].some((id) => {
    const snapshot = peers.get(id)?.snapshot ?? null;
    return snapshot === null || isUpTo(version, snapshot.drains.get(name));
  });
}

function isUpTo(version: string, drain: DrainState | undefined): boolean {
  return drain !== undefined && drain.version <= version;
}

function isForgettable(
  { members, peers, applied }: FleetState,
  {
    name,
    drains,
    gone,
  }: {
    readonly name: string;
    readonly drains: ReadonlyMap<string, DrainState>;
    readonly gone: OwnNames['gone'];
  },
  { nowEpochMs, keptMs }: OwnNames,
): boolean {
  const version = drains.get(name)?.version ?? '';
  const isOld = (since: string | undefined) =>
    since !== undefined && nowEpochMs - Date.parse(since) >= keptMs;
  if (applied.get(name) !== version || !isOld(gone.get(name))) return false;
  return [...members.keys()].every((id) => {
    const snapshot = peers.get(id)?.snapshot ?? null;
    if (snapshot === null) return false;
    // What it says of the name is about this state.
    const isSame = snapshot.drains.get(name)?.version === version;
    return (snapshot.forgotten?.get(name) ?? '') >= version || (isSame && isOld(snapshot.gone?.get(name)));
  });
}

/**
 * Since when the other gateways that have the same state of a name have been without it, all of them; undefined: one has
 * it, or none has the state. A gateway that learns a state from them, and does not have the name, begins to count there:
 * otherwise gateways that start often would keep it for ever.
 */
export function goneElsewhereSince({ peers, drains }: FleetState, name: string): string | undefined {
  const version = drains.get(name)?.version;
  const times = [...peers.values()].flatMap(({ snapshot }) =>
    snapshot?.drains.get(name)?.version === version ? [snapshot?.gone?.get(name)] : [],
  );
  return times.includes(undefined) ? undefined : times.toSorted().at(-1);
}
