import type { Logger } from 'pino';
import type { LimitRows } from '#access';
import { orStartError } from '#base';
import { createMembershipFile, createRedisStore, type Fleet, FleetLog, openFleet } from '#fleet';
import type { ReplicaControl } from '#replicas/control';
import type { ConfigInEffect } from './config-in-effect.ts';

interface FleetSurroundings {
  readonly replicas: Pick<ReplicaControl, 'drains' | 'registry'>;
  /** What clients with limits use, which a fleet shares. */
  readonly limitRows: LimitRows;
  readonly log: Logger;
}

/** Composes what shares drains with other gateways. Null: there is no fleet. Rejects with a StartError. */
export async function composeFleet(
  inEffect: ConfigInEffect,
  { replicas: { registry, drains }, limitRows, log }: FleetSurroundings,
): Promise<Fleet | null> {
  const { gateway, fleet, stateDir } = inEffect.config;
  if (fleet === null) return null;
  const opening = openFleet(gateway.name, {
    store: createRedisStore({ url: () => inEffect.config.fleet?.url ?? '', prefix: fleet.prefix }),
    file: createMembershipFile(stateDir, log),
    drains,
    inflight: () => registry.inflightByName(),
    background: () => registry.backgroundByName(),
    clientLimits: limitRows,
    log: new FleetLog(log),
  });
  return await orStartError('fleet', opening);
}
