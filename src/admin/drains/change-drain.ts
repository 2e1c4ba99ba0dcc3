import type { ChangeDetails } from '#replicas/drain-state';
import type { RegisteredReplica } from '#replicas/registry';
import type { AdminCollaborators, DrainPropagation, FleetDrainChange } from '../admin-collaborators.ts';

/** The result of a drain or an undrain. */
export interface DrainResult {
  readonly wasDrained: boolean;
  /** Whether it is on disk. If not, a restart forgets it. */
  readonly isStored: boolean;
  /** How far it has propagated so far. Without a fleet: no more than whether it is overtaken. */
  readonly propagation: () => Partial<DrainPropagation>;
  /** What the caller should know about this gateway although the call succeeded; null entries are left out. */
  readonly warnings: readonly (string | null)[];
}

/** What a call gives, and whose token it has. */
interface CallDetails extends Pick<ChangeDetails, 'rampMs' | 'version'> {
  readonly reason: string | null | undefined;
  readonly tokenName: string | null;
}

/**
 * Drains or undrains, unless a later call came before this one: then nothing changes. Resolves when the state is applied
 * and on disk, every worker has confirmed it, and the fleet had time to read it. If a later step fails, the result has a
 * warning; the drain or undrain stays applied. Whether the caller may do it is decided before, in routes/drain.ts.
 */
export async function changeDrain(
  replica: Pick<RegisteredReplica, 'name' | 'inflight'>,
  action: 'drain' | 'undrain',
  { reason, tokenName, rampMs = 0, version }: CallDetails,
  { drains, fleet, onAction, log }: AdminCollaborators,
): Promise<DrainResult> {
  const startEpochMs = Date.now();
  const { name } = replica;
  const details = { reason: reason ?? null, at: new Date(startEpochMs).toISOString(), rampMs, version };
  const { before, after, stored, settled, propagation } = set(name, action === 'drain', details, {
    drains,
    fleet,
  });
  if (after === before) {
    await settled;
    return { wasDrained: before.drained, isStored: true, propagation, warnings: [] };
  }
  const ramp = after.rampMs === undefined ? {} : { rampMs: after.rampMs };
  const done = { action, replica: name, inflight: replica.inflight, reason: after.reason };
  const logged = { ...done, ...(after.rampMs === undefined ? {} : { ramp_ms: after.rampMs }) };
  log.info({ ...logged, was_drained: before.drained, token_name: tokenName }, action);
  // Not when it is answered: what overtakes it would be told before.
  onAction({ ...done, ...ramp, wasDrained: before.drained, tokenName, startEpochMs });
  const storing = stored.then(
    () => true,
    () => false,
  );
  // When every worker has answered, a request whose replica was chosen before the drain has been sent.
  const [isStored, silentWorkers] = await Promise.all([storing, drains.confirm(name), settled]);
  if (silentWorkers.length > 0) log.error({ replica: name, workers: silentWorkers }, 'drain not confirmed');
  return {
    wasDrained: before.drained,
    isStored,
    propagation,
    warnings: [
      isStored ? null : 'The state is applied but could not be stored: a restart forgets it.',
      warnOfWorkers(silentWorkers),
    ],
  };
}

function warnOfWorkers(silent: readonly number[]): string | null {
  if (silent.length === 0) return null;
  const subject = silent.length === 1 ? 'Worker %s has' : 'Workers %s have';
  return `${subject.replace('%s', silent.join(', '))} not confirmed it yet and may still send a request.`;
}

function set(
  name: string,
  drained: boolean,
  details: ChangeDetails,
  { drains, fleet }: Pick<AdminCollaborators, 'drains' | 'fleet'>,
): Omit<FleetDrainChange, 'propagation'> & Pick<DrainResult, 'propagation'> {
  if (fleet !== null) return fleet.set(name, drained, details);
  const propagation = () => (drains.stateOf(name).drained === drained ? {} : { overtaken: true });
  return { ...drains.set(name, drained, details), settled: Promise.resolve(), propagation };
}

/** What the caller should know about the propagation of a drain or an undrain; null if nothing. */
export function warnOfPropagation(
  action: 'drain' | 'undrain',
  { scope, overtaken, unconfirmed = [] }: Partial<DrainPropagation>,
): string | null {
  if (overtaken)
    return `A later ${action === 'drain' ? 'undrain' : 'drain'}, perhaps on another gateway, has replaced it.`;
  if (scope === 'local') {
    return 'The shared state cannot be used: the other gateways receive it when it can be used again.';
  }
  if (action === 'undrain' || unconfirmed.length === 0) return null;
  return `Not confirmed yet by ${unconfirmed.join(', ')}, which may still send requests.`;
}
