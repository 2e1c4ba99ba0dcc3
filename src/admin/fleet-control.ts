import type { DrainChange } from '../replicas/control/drains.ts';

/** How far a drain or an undrain has spread. */
export interface DrainPropagation {
  /** `local`: the others could not be told since the call. */
  readonly scope: 'fleet' | 'local';
  /** A later call for the opposite, perhaps on another gateway, holds instead. */
  readonly overtaken: boolean;
  /** The names of the gateways that have not said that they go by the present state. */
  readonly unconfirmed: readonly string[];
}

/** A drain or an undrain, and how it spreads. */
export interface FleetDrainChange extends DrainChange {
  /** Resolves when it can be answered: it is in force here or overtaken, and the others had a moment to hear of it. */
  readonly settled: Promise<void>;
  /** How far it has spread up to now. */
  propagation(): DrainPropagation;
}

/** The gateways that share drains, as the admin API works with them. */
export interface FleetControl {
  /**
   * Drains, in force here at once; or undrains, in force here when nobody in the fleet can believe any more that the
   * replica is drained. `stored` resolves when it is in force and on disk.
   */
  set(
    replica: string,
    drained: boolean,
    why: { readonly reason: string | null; readonly at: string },
  ): FleetDrainChange;
  /** How a replica stands in the whole fleet, given what this gateway has in flight on it. */
  drainStatusOf(
    replica: string,
    ownInflight: number,
  ): {
    readonly safeToStop: boolean | null;
    readonly inflight: number;
    readonly unconfirmed: readonly string[];
  };
  gateways(): readonly FleetGateway[];
  /** No longer waits for the gateways of a name that vanished; or answers why it does. */
  forget(name: string): 'gateway_not_found' | 'gateway_alive' | 'fleet_unreachable' | null;
}

/** A gateway that is waited for. */
export interface FleetGateway {
  readonly name: string;
  /** That of its process; null for a gateway that shares nothing. */
  readonly id: string | null;
  readonly isSelf: boolean;
  readonly isAlive: boolean;
  /** Null if it is not alive. */
  readonly inflight: number | null;
}
