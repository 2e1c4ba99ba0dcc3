import { NEVER_DRAINED } from '../replicas/control/drains.ts';
import type { FleetState } from './fleet-state.ts';
import { standingOf, unheardOf } from './standing.ts';

/** A drain or an undrain that somebody asked this gateway for. */
export interface Call {
  readonly replica: string;
  /** Whether it is a drain. */
  readonly drained: boolean;
  /** On this gateway's monotonic clock. */
  readonly calledAtMs: number;
}

/** How far a call has spread. */
export interface Spread {
  /**
   * `fleet`: this gateway has read the store and written to it since the call. `local`: the others hear of the call
   * later.
   */
  readonly scope: 'fleet' | 'local';
  /** Whether a later call for the opposite, perhaps on another gateway, holds instead. */
  readonly overtaken: boolean;
  /** The names of the gateways that are not known to go by the present state of the replica. */
  readonly unconfirmed: readonly string[];
}

/** Tells how far a call has spread. */
export function spreadOf(state: FleetState, { replica, drained, calledAtMs }: Call, nowMs: number): Spread {
  const present = state.drains.get(replica) ?? NEVER_DRAINED;
  return {
    scope: (state.sharedAtMs ?? Number.NEGATIVE_INFINITY) > calledAtMs ? 'fleet' : 'local',
    overtaken: present.drained !== drained,
    unconfirmed: present.drained
      ? standingOf(state, replica, 0, nowMs).unconfirmed
      : unheardOf(state, replica, present.version),
  };
}
