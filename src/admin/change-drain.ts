import type { RegisteredReplica } from '../replicas/control/registry.ts';
import type { AdminServices } from './admin-services.ts';
import type { DrainPropagation, FleetDrainChange } from './fleet-control.ts';

/** What a drain or undrain came to. */
export interface DrainResult {
  readonly wasDrained: boolean;
  /** Whether it is on disk: a restart forgets it otherwise. */
  readonly isStored: boolean;
  /** How far it has spread up to now; null without a fleet. */
  readonly propagation: () => DrainPropagation | null;
  /** What there is to know of this gateway although it succeeded; null where there is nothing. */
  readonly warnings: readonly (string | null)[];
}

/**
 * Drains or undrains; resolves once the state is in force and on disk, every worker goes by it, and the fleet has had
 * a moment to hear of it. What does not succeed of the rest is a warning, and takes nothing back.
 */
export async function changeDrain(
  replica: Pick<RegisteredReplica, 'name' | 'inflight'>,
  action: 'drain' | 'undrain',
  why: string | null | undefined,
  { drains, fleet, onAction, log }: AdminServices,
): Promise<DrainResult> {
  const startEpochMs = Date.now();
  const { name } = replica;
  const given = { reason: why ?? null, at: new Date(startEpochMs).toISOString() };
  const { before, after, stored, settled, propagation } = set(name, action === 'drain', given, {
    drains,
    fleet,
  });
  const done = { action, replica: name, inflight: replica.inflight, reason: after.reason };
  log.info({ ...done, was_drained: before.drained }, action);
  const storing = stored.then(
    () => true,
    (error) => {
      log.error({ err: error, replica: name }, 'drain state not stored');
      return false;
    },
  );
  // Whoever decided to send before the drain has sent when every worker has answered.
  const [isStored, silentWorkers] = await Promise.all([storing, drains.confirm(name), settled]);
  onAction({ ...done, wasDrained: before.drained, startEpochMs });
  if (silentWorkers.length > 0) log.error({ replica: name, workers: silentWorkers }, 'drain not confirmed');
  return {
    wasDrained: before.drained,
    isStored,
    propagation,
    warnings: [
      isStored ? null : 'The state is in force but could not be stored: a restart forgets it.',
      silentWorkers.length === 0
        ? null
        : `No answer yet from workers ${silentWorkers.join(', ')}: a request they had begun may still come.`,
    ],
  };
}

function set(
  name: string,
  drained: boolean,
  why: { readonly reason: string | null; readonly at: string },
  { drains, fleet }: Pick<AdminServices, 'drains' | 'fleet'>,
): Omit<FleetDrainChange, 'propagation'> & Pick<DrainResult, 'propagation'> {
  if (fleet !== null) return fleet.set(name, drained, why);
  return { ...drains.set(name, drained, why), settled: Promise.resolve(), propagation: () => null };
}

/** What there is to know of how far a drain or undrain has spread; null if nothing. */
export function warnOfPropagation(
  action: 'drain' | 'undrain',
  { scope, overtaken, unconfirmed }: DrainPropagation,
): string | null {
  if (overtaken) {
    return `A later ${action === 'drain' ? 'undrain' : 'drain'}, perhaps on another gateway, holds instead.`;
  }
  if (scope === 'local')
    return 'The shared state cannot be reached: the other gateways hear of it when it can.';
  if (action === 'undrain' || unconfirmed.length === 0) return null;
  return `Not confirmed yet by ${unconfirmed.join(', ')}: it may still send requests there.`;
}
