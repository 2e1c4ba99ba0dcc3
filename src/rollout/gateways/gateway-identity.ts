import { StartError } from '#base';
import { itemsOf, memberOf } from '#base/parsed';
import type { AdminClient } from '#cli/admin-client';

/** Which gateway an admin API belongs to. */
export interface GatewayIdentity {
  readonly address: string;
  /** The same after a restart with the same `state_dir`. */
  readonly instanceId: string;
  /** The ids of the processes of its fleet that it knows, its own among them; none without a fleet. */
  readonly fleet: readonly string[];
}

/** Asks an admin API which gateway it is. Throws a StartError. */
export async function identify(client: AdminClient, signal: AbortSignal): Promise<GatewayIdentity> {
  const answer = await client.call('GET', '/admin/gateways', signal);
  const instanceId = memberOf(answer, 'instance_id');
  if (typeof instanceId !== 'string')
    throw new StartError(`${client.baseUrl} does not say which gateway it is`);
  const ids = itemsOf(answer, 'gateways').map((gateway) => memberOf(gateway, 'id'));
  return {
    address: client.baseUrl,
    instanceId,
    fleet: ids.filter((id): id is string => typeof id === 'string'),
  };
}

/**
 * Checks that these are the gateways that a rollout was begun with. Of a fleet, any gateway stands for all of them. Throws a
 * StartError that names a gateway that is another one, or is missing.
 */
export function checkSameGateways(
  begun: readonly GatewayIdentity[],
  present: readonly GatewayIdentity[],
): void {
  const other = present.find((each) => !begun.some((known) => isSame(known, each)));
  const missing = begun.find((each) => !present.some((known) => isSame(known, each)));
  const remedy = 'Name it with --admin or -config, or begin another rollout with --new';
  if (other !== undefined) {
    const known = begun.map(describe).join(', ');
    throw new StartError(
      `${describe(other)} is not the gateway of this rollout, which is ${known}. ${remedy}`,
    );
  }
  if (missing !== undefined) {
    throw new StartError(`this rollout also has the gateway ${describe(missing)}. ${remedy}`);
  }
}

function isSame(a: GatewayIdentity, b: GatewayIdentity): boolean {
  return a.instanceId === b.instanceId || a.fleet.some((id) => b.fleet.includes(id));
}

function describe({ address, instanceId }: GatewayIdentity): string {
  return `${address} (instance ${instanceId})`;
}
