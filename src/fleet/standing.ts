import type { DrainState } from '../replicas/control/drains.ts';
import type { FleetState, Peer } from './fleet-state.ts';
import { BELIEF_MS, PROMISE_MS, SETTLED_MS } from './timing.ts';

/** How a replica stands in the whole fleet. */
export interface FleetStanding {
  /** True only if nothing is in flight on it in the whole fleet and nothing can begin; null if that cannot be known. */
  readonly safeToStop: boolean | null;
  /** In flight in all gateways that are believed at this moment. */
  readonly inflight: number;
  /** The names of the gateways of which it is not known that this drain is in force there; empty if not drained. */
  readonly unconfirmed: readonly string[];
}

/** Tells how a replica stands. `ownInflight` was counted after the last change of the state. */
export function standingOf(
  state: FleetState,
  replica: string,
  ownInflight: number,
  nowMs: number,
): FleetStanding {
  const believed = [...state.peers.values()].filter(({ believedUntilMs }) => nowMs < believedUntilMs);
  const inflight = believed.reduce((sum, { beat }) => sum + (beat?.inflight.get(replica) ?? 0), ownInflight);
  const drain = state.drains.get(replica);
  if (drain?.drained !== true) return { safeToStop: false, inflight, unconfirmed: [] };
  const unconfirmed = unconfirmedOf(state, replica, drain.version, nowMs);
  const isKnown = unconfirmed.length === 0 && isSettled(state, nowMs);
  return { safeToStop: inflight > 0 ? false : isKnown || null, inflight, unconfirmed };
}

function unconfirmedOf(
  state: FleetState,
  replica: string,
  version: string,
  nowMs: number,
): readonly string[] {
  const names = new Set<string>();
  if (state.inForce.get(replica) !== version) names.add(state.name);
  for (const [id, name] of state.members) {
    const { beat = null, ledger = null, believedUntilMs = 0 } = state.peers.get(id) ?? {};
    const isConfirmed =
      nowMs < believedUntilMs &&
      beat?.drained.get(replica) === version &&
      // Whom it knows is known here as well.
      (ledger?.revision ?? 0) >= beat.revision;
    if (!isConfirmed) names.add(name);
  }
  return [...names].sort();
}

/** The names of the gateways that are not known to have heard of this state of a replica, or of a later one. */
export function unheardOf(
  { members, peers }: FleetState,
  replica: string,
  version: string,
): readonly string[] {
  const unheard = [...members].filter(([id]) => {
    const known = peers.get(id)?.ledger?.drains.get(replica)?.version ?? '';
    return known < version;
  });
  return [...new Set(unheard.map(([, name]) => name))].sort();
}

/** Whether the store is heard, and has been for long enough for everybody to be found in it. */
function isSettled({ heardAtMs, heardSinceMs }: FleetState, nowMs: number): boolean {
  if (heardAtMs === null || heardSinceMs === null) return false;
  return nowMs - heardAtMs <= BELIEF_MS && heardAtMs - heardSinceMs >= SETTLED_MS;
}

/**
 * Whether a gateway has joined the fleet, and so may serve: everybody who could say `safe_to_stop` waits for it, and
 * what it has heard of drains is in force. That holds for undrains too: if it lost its state_dir, somebody may still
 * believe what it promised with it.
 */
export function isJoined(state: FleetState): boolean {
  const { id, pinnedRevision, heardAtMs, heardSinceMs, beating, removed, peers } = state;
  if (heardAtMs === null || heardSinceMs === null || pinnedRevision === 0 || !beating.has(id)) return false;
  const others = [...beating].filter((other) => other !== id && !removed.includes(other));
  // Nobody there: whoever was, and lost sight of the store together with its data, is given time to come back.
  if (others.length === 0 && heardAtMs - heardSinceMs < PROMISE_MS) return false;
  const isInForce = ([replica, { version }]: readonly [string, DrainState]) =>
    state.inForce.get(replica) === version;
  return others.every((other) => knows(peers.get(other), id)) && [...state.drains].every(isInForce);
}

/**
 * Whether a gateway that was known to others when it stopped may serve without having joined: it has not heard of
 * the store since it started, or for so long that nobody believes anything from before.
 */
export function isOnItsOwn({ heardAtMs }: FleetState, startedAtMs: number, nowMs: number): boolean {
  return nowMs - (heardAtMs ?? startedAtMs) >= PROMISE_MS;
}

/** Whether a gateway has repeated a beat of `id`, and all that it knew by then is known here. */
function knows(peer: Peer | undefined, id: string): boolean {
  const { beat = null, ledger = null } = peer ?? {};
  return beat?.heard.has(id) === true && (ledger?.revision ?? 0) >= beat.revision;
}

/** A gateway as the others list it. */
export interface GatewayView {
  readonly name: string;
  readonly id: string;
  readonly isSelf: boolean;
  /** Whether what it says is believed at this moment. */
  readonly isAlive: boolean;
  /** Its requests in flight, on all replicas; null if it is not believed. */
  readonly inflight: number | null;
}

/** The gateways that are waited for, by name; `ownInflight` is this one's. */
export function listGateways(state: FleetState, ownInflight: number, nowMs: number): readonly GatewayView[] {
  const self = { name: state.name, id: state.id, isSelf: true, isAlive: true, inflight: ownInflight };
  const others = [...state.members].map(([id, name]) => {
    const { beat = null, believedUntilMs = 0 } = state.peers.get(id) ?? {};
    const isAlive = beat !== null && nowMs < believedUntilMs;
    const inflight = isAlive ? beat.inflight.values().reduce((sum, count) => sum + count, 0) : null;
    return { name, id, isSelf: false, isAlive, inflight };
  });
  return [self, ...others].sort((a, b) => (a.name < b.name || (a.name === b.name && a.id < b.id) ? -1 : 1));
}

/** Why nobody of a name can be forgotten. */
export type NotForgotten = 'gateway_not_found' | 'gateway_alive' | 'fleet_unreachable';

/** The ids under which a gateway that vanished is known; or why there are none that may be forgotten. */
export function findVanished(
  state: FleetState,
  name: string,
  nowMs: number,
): readonly string[] | NotForgotten {
  const named = [...state.members].filter(([, other]) => other === name).map(([id]) => id);
  if (named.length === 0) return name === state.name ? 'gateway_alive' : 'gateway_not_found';
  const silent = named.filter((id) => nowMs >= (state.peers.get(id)?.believedUntilMs ?? 0));
  if (silent.length === 0) return 'gateway_alive';
  // Whoever hears nobody cannot tell who vanished.
  if (!isSettled(state, nowMs)) return 'fleet_unreachable';
  const vanished = silent.filter((id) => !state.beating.has(id));
  return vanished.length === 0 ? 'gateway_alive' : vanished;
}
