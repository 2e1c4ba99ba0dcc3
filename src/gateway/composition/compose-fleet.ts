import type { LimitRows } from '#access/limits';
import { orStartError } from '#base';
import type { Fleet } from '#fleet';
import type { ReplicaControl } from '#replicas/control';
import { toGatewayName } from '../serving/settings.ts';
import type { Composition } from './gateway-collaborators.ts';

interface FleetSurroundings {
  readonly replicas: Pick<ReplicaControl, 'drains' | 'registry' | 'backgroundCounts'>;
  /** What clients with limits use, which a fleet shares. */
  readonly limitRows: LimitRows;
}

/** Composes what shares drains with other gateways. Null: there is no fleet. Rejects with a StartError. */
export async function composeFleet(
  { inEffect, collaborators: { log }, parts, events, onStateWrite, version }: Composition,
  { replicas: { registry, drains, backgroundCounts }, limitRows }: FleetSurroundings,
): Promise<Fleet | null> {
  const { state, stateDir } = inEffect.config;
  if (state.redis === null) return null;
  // Only now: the client of Redis takes 10 MB, and a third of a second of the start.
  const { createMembershipFile, createRedisStore, FleetLog, openFleet } = await import('#fleet');
  const opening = openFleet(toGatewayName(inEffect.config), {
    store: createRedisStore({ url: () => inEffect.config.state.redis ?? '', prefix: state.prefix }),
    file: createMembershipFile(stateDir, log, onStateWrite),
    version,
    drains,
    inflight: () => registry.inflightByName(),
    background: () => registry.backgroundByName(),
    backgroundUntilMs: () => backgroundCounts.untilMs,
    backgroundLimitMs: () => inEffect.config.limits.backgroundMs,
    clientLimits: limitRows,
    log: new FleetLog(log, (replica, drain) => events.emit('drain', replica, drain)),
  });
  const fleet = await orStartError('fleet', opening);
  parts.add('topology', {
    start: () => orStartError('state.redis', fleet.join()),
    stop: () => fleet.leave(),
  });
  return fleet;
}
