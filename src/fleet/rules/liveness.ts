import type { DrainState } from '#replicas/drain-state';
import type { SharesReport } from '../inflight-shares.ts';
import { HEARTBEAT_TTL_MS, HEARTBEAT_VALID_MS, STABLE_AFTER_MS } from '../timing.ts';
import type { FleetState, Peer } from './fleet-state.ts';

/** Whether the store can be read, and has been for long enough to contain every gateway that can reach it. */
export function isStable({ readAtMs, readableSinceMs }: FleetState, nowMs: number): boolean {
  if (readAtMs === null || readableSinceMs === null) return false;
  return nowMs - readAtMs <= HEARTBEAT_VALID_MS && readAtMs - readableSinceMs >= STABLE_AFTER_MS;
}

/**
 * Whether a gateway has joined the fleet and may serve: every gateway that could answer `safe_to_stop` counts it as a
 * member, and it has applied every drain state that it read. That includes undrains: if this gateway lost its
 * state_dir, others may still rely on a drain that it confirmed before.
 */
export function isJoined(state: FleetState): boolean {
  const { id, publishedRevision, readAtMs, readableSinceMs, heartbeatIds, removed, peers } = state;
  if (readAtMs === null || readableSinceMs === null || publishedRevision === 0 || !heartbeatIds.has(id)) {
    return false;
  }
  const others = [...heartbeatIds].filter((other) => other !== id && !removed.includes(other));
  // No other gateway is there. If the store lost its data and its connections, they get time to come back.
  if (others.length === 0 && readAtMs - readableSinceMs < HEARTBEAT_TTL_MS) return false;
  const isApplied = ([replica, { version }]: readonly [string, DrainState]) =>
    state.applied.get(replica) === version;
  return others.every((other) => hasAcknowledged(peers.get(other), id)) && [...state.drains].every(isApplied);
}

/**
 * Whether a gateway that others knew when it stopped may serve without joining. It may if it could not read the store
 * since it started, or for so long that every earlier heartbeat has expired.
 */
export function mayServeAlone({ readAtMs }: FleetState, startedAtMs: number, nowMs: number): boolean {
  return nowMs - (readAtMs ?? startedAtMs) >= HEARTBEAT_TTL_MS;
}

/** Whether a gateway has acknowledged a heartbeat of `id`, and this gateway has read all that it knew by then. */
function hasAcknowledged(peer: Peer | undefined, id: string): boolean {
  const { heartbeat = null, snapshot = null } = peer ?? {};
  return heartbeat?.heard.has(id) === true && (snapshot?.revision ?? 0) >= heartbeat.revision;
}

/** A gateway as the fleet lists it. */
export interface GatewayStatus {
  readonly name: string;
  readonly id: string;
  readonly isSelf: boolean;
  /** Whether its heartbeat is valid now; null if the store cannot tell, because it is away or has just come back. */
  readonly isAlive: boolean | null;
  /** Its requests in flight on all replicas; null if it is not alive. */
  readonly inflight: number | null;
  /** Its version; null if it is not alive, or does not tell it. */
  readonly version: string | null;
}

/**
 * The gateways that are there: a store that has lost its data does not have all valid heartbeats, and one that is not
 * stable yet not all gateways that were there `before`. What those told is over.
 */
export function presentGateways(state: FleetState, before: readonly SharesReport[], nowMs: number) {
  const stay = new Set(isStable(state, nowMs) ? [] : before.map(({ id }) => id));
  return [...state.peers].flatMap(([id, { heartbeat, validUntilMs }]) => {
    if (state.heartbeatIds.has(id) || nowMs < validUntilMs) return heartbeat ?? [];
    return stay.has(id) ? { id } : [];
  });
}

/** Lists the members of the fleet by name. `own`: what this gateway knows of itself. */
export function toGatewayStatuses(
  state: FleetState,
  own: Pick<GatewayStatus, 'inflight' | 'version'>,
  nowMs: number,
): readonly GatewayStatus[] {
  const absent = isStable(state, nowMs) ? false : null;
  const self = { name: state.name, id: state.id, isSelf: true, isAlive: true, ...own };
  const others = [...state.members].map(([id, name]) => {
    const { heartbeat = null, validUntilMs = 0 } = state.peers.get(id) ?? {};
    const valid = nowMs < validUntilMs ? heartbeat : null;
    const inflight = valid?.inflight.values().reduce((sum, count) => sum + count, 0) ?? null;
    const isAlive = valid === null ? absent : true;
    return { name, id, isSelf: false, isAlive, inflight, version: valid?.version ?? null };
  });
  return [self, ...others].sort((a, b) => (a.name < b.name || (a.name === b.name && a.id < b.id) ? -1 : 1));
}

/** Why a gateway cannot be forgotten. */
export type ForgetError = 'gateway_not_found' | 'gateway_alive' | 'fleet_unreachable';

/** Returns the ids of the gateways of this name that have vanished, or why there is none to forget. */
export function findVanished(
  state: FleetState,
  name: string,
  nowMs: number,
): readonly string[] | ForgetError {
  const named = [...state.members].filter(([, other]) => other === name).map(([id]) => id);
  if (named.length === 0) return name === state.name ? 'gateway_alive' : 'gateway_not_found';
  const silent = named.filter((id) => nowMs >= (state.peers.get(id)?.validUntilMs ?? 0));
  if (silent.length === 0) return 'gateway_alive';
  // A gateway that cannot read the store cannot tell which gateways have vanished.
  if (!isStable(state, nowMs)) return 'fleet_unreachable';
  const vanished = silent.filter((id) => !state.heartbeatIds.has(id));
  return vanished.length === 0 ? 'gateway_alive' : vanished;
}
