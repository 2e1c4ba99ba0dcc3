import type { RegisteredReplica } from '../replicas/control/registry.ts';
import type { FleetControl } from './fleet-control.ts';

/** How a replica stands: in the whole fleet, if there is one. */
export interface Standing {
  readonly inflight: number;
  readonly isSafeToStop: boolean | null;
  /** The gateways of which it is not known that they go by its drain; null without a fleet. */
  readonly unconfirmed: readonly string[] | null;
}

/** Tells how a replica stands now. */
export function toStanding(replica: RegisteredReplica, fleet: FleetControl | null): Standing {
  const { name, inflight, isSafeToStop } = replica;
  if (fleet === null) return { inflight, isSafeToStop, unconfirmed: null };
  // Others may serve what was removed here, and no drain says that they do not.
  if (replica.isRemoving) {
    return { inflight, isSafeToStop: isSafeToStop === false ? false : null, unconfirmed: null };
  }
  const { safeToStop, ...rest } = fleet.drainStatusOf(name, inflight);
  return { ...rest, isSafeToStop: safeToStop };
}
