import { UsageError } from '#cli/command';
import type { GatewayIdentity } from '../gateways/gateway-identity.ts';
import type { RolloutState } from '../progress-file/state-file.ts';
import type { RolloutSettings } from '../settings.ts';

/** What a person corrects when a rollout goes on. */
interface Corrections {
  readonly settings: RolloutSettings;
  readonly gateways: readonly GatewayIdentity[];
  readonly skip: readonly string[];
  readonly accept: readonly string[];
}

/** A rollout that goes on, and the replicas that are left out from now on. */
interface TakenUp {
  readonly state: RolloutState;
  readonly skipped: readonly string[];
}

/** Takes up a rollout that has stopped. Throws a UsageError for a replica that is not of it, or that is done. */
export function takeUp(stored: RolloutState, { settings, gateways, skip, accept }: Corrections): TakenUp {
  for (const [option, names] of [
    ['skip', skip],
    ['accept', accept],
  ] as const) {
    const isOpen = (name: string) =>
      stored.replicas.some((each) => each.name === name && each.stage !== 'done' && each.stage !== 'skipped');
    const wrong = names.find((name) => !isOpen(name));
    if (wrong === undefined) continue;
    throw new UsageError(
      `option '--${option}': this rollout has nothing left to do for ${JSON.stringify(wrong)}`,
    );
  }
  const both = skip.find((name) => accept.includes(name));
  if (both !== undefined) throw new UsageError(`${JSON.stringify(both)} cannot be skipped and accepted`);
  const replicas = stored.replicas.map((replica) =>
    skip.includes(replica.name) ? { ...replica, stage: 'skipped' as const } : replica,
  );
  const accepted = [...new Set([...stored.accepted, ...accept])];
  return { state: { ...stored, settings, gateways, replicas, accepted }, skipped: [...new Set(skip)] };
}
