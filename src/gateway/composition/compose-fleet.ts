import type { LimitRows } from '#access';
import { orStartError } from '#base';
import { createMembershipFile, createRedisStore, type Fleet, FleetLog, openFleet } from '#fleet';
import type { ReplicaControl } from '#replicas/control';
import type { Composition } from './gateway-collaborators.ts';

interface FleetSurroundings {
  readonly replicas: Pick<ReplicaControl, 'drains' | 'registry'>;
  /** What clients with limits use, which a fleet shares. */
  readonly limitRows: LimitRows;
}

/** Composes what shares drains with other gateways. Null: there is no fleet. Rejects with a StartError. */
export async function composeFleet(
  { inEffect, collaborators: { log }, parts }: Composition,
  { replicas: { registry, drains }, limitRows }: FleetSurroundings,
): Promise<Fleet | null> {
  const { gateway, fleet: settings, stateDir } = inEffect.config;
  if (settings === null) return null;
  const opening = openFleet(gateway.name, {
    store: createRedisStore({ url: () => inEffect.config.fleet?.url ?? '', prefix: settings.prefix }),
    file: createMembershipFile(stateDir, log),
    drains,
    inflight: () => registry.inflightByName(),
    background: () => registry.backgroundByName(),
    clientLimits: limitRows,
    log: new FleetLog(log),
  });
  const fleet = await orStartError('fleet', opening);
  parts.add('topology', {
    start: () => orStartError('state.redis', fleet.join()),
    stop: () => fleet.leave(),
  });
  return fleet;
}
