import { NEVER_DRAINED } from '#replicas/drain-state';
import { addBackground, type BackgroundCount, NO_BACKGROUND } from '#replicas/terms';
import type { FleetState } from './fleet-state.ts';
import { leftOn } from './left-work.ts';
import { isStable } from './liveness.ts';

/** The drain status of a replica in the whole fleet. */
export interface FleetDrainStatus {
  /** True only if no gateway has a request or a response on it and none can start one; null if that cannot be known. */
  readonly safeToStop: boolean | null;
  /** Requests in flight, summed over all gateways whose heartbeat is valid. */
  readonly inflight: number;
  /** What it goes on with after its answers, likewise. */
  readonly background: BackgroundCount;
  /** The names of the gateways that have not confirmed this drain; empty if the replica is not drained. */
  readonly unconfirmed: readonly string[];
}

/** What a gateway itself has on a replica. */
export type OwnWork = Pick<FleetDrainStatus, 'inflight' | 'background'>;

/** Returns the drain status of a replica. `own` must have been counted after the last change of the state. */
export function drainStatusOf(
  state: FleetState,
  replica: string,
  own: OwnWork,
  nowMs: number,
): FleetDrainStatus {
  let { inflight, background } = own;
  for (const { heartbeat, validUntilMs } of state.peers.values()) {
    if (heartbeat === null || nowMs >= validUntilMs) continue;
    inflight += heartbeat.inflight.get(replica) ?? 0;
    background = addBackground(background, heartbeat.background?.get(replica) ?? NO_BACKGROUND);
  }
  background = addBackground(background, { running: 0, unknown: leftOn(state.left, replica, nowMs) });
  const work = { inflight, background };
  const drain = state.drains.get(replica);
  if (drain?.drained !== true) return { safeToStop: false, ...work, unconfirmed: [] };
  const unconfirmed = unconfirmedBy(state, replica, drain.version, nowMs);
  const isKnown = background.unknown === 0 && unconfirmed.length === 0 && isStable(state, nowMs);
  const isWorking = inflight > 0 || background.running > 0;
  return { safeToStop: isWorking ? false : isKnown || null, ...work, unconfirmed };
}

const NOTHING: OwnWork = { inflight: 0, background: NO_BACKGROUND };

function unconfirmedBy(
  state: FleetState,
  replica: string,
  version: string,
  nowMs: number,
): readonly string[] {
  const names = new Set<string>();
  if (state.applied.get(replica) !== version) names.add(state.name);
  for (const [id, name] of state.members) {
    const { heartbeat = null, snapshot = null, validUntilMs = 0 } = state.peers.get(id) ?? {};
    const isConfirmed =
      nowMs < validUntilMs &&
      heartbeat?.drained.get(replica) === version &&
      // The members that it knew at this heartbeat are known here too.
      (snapshot?.revision ?? 0) >= heartbeat.revision;
    if (!isConfirmed) names.add(name);
  }
  return [...names].sort();
}

/** The names of the gateways that may not have read this version of a replica's drain state, or a later one. */
export function unawareOf(
  { members, peers }: FleetState,
  replica: string,
  version: string,
): readonly string[] {
  const unaware = [...members].filter(([id]) => {
    const known = peers.get(id)?.snapshot?.drains.get(replica)?.version ?? '';
    return known < version;
  });
  return [...new Set(unaware.map(([, name]) => name))].sort();
}

/** A drain or an undrain that an operator asked this gateway for. */
export interface RequestedDrain {
  readonly replica: string;
  /** True for a drain, false for an undrain. */
  readonly drained: boolean;
  /** On this gateway's monotonic clock. */
  readonly calledAtMs: number;
}

/** How far a drain or an undrain has propagated through the fleet. */
export interface Propagation {
  /**
   * `fleet`: this gateway has read the store and written to it since the call. `local`: it has not yet, so the other
   * gateways learn of the call later.
   */
  readonly scope: 'fleet' | 'local';
  /** Whether a later, opposite call won, perhaps on another gateway. */
  readonly overtaken: boolean;
  /** The names of the gateways that have not confirmed the replica's current state. */
  readonly unconfirmed: readonly string[];
}

/** Returns how far a call has propagated. */
export function propagationOf(
  state: FleetState,
  { replica, drained, calledAtMs }: RequestedDrain,
  nowMs: number,
): Propagation {
  const current = state.drains.get(replica) ?? NEVER_DRAINED;
  return {
    scope: (state.syncedAtMs ?? Number.NEGATIVE_INFINITY) > calledAtMs ? 'fleet' : 'local',
    overtaken: current.drained !== drained,
    unconfirmed: current.drained
      ? drainStatusOf(state, replica, NOTHING, nowMs).unconfirmed
      : unawareOf(state, replica, current.version),
  };
}
