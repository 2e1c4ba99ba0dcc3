import type { Finding, Producer } from '#conditions';
import type { Fleet } from '#fleet';
import { toShownName } from '#otel/base';
import type { ReplicaRegistry } from '#replicas/registry';
import { toList } from './finding-parts.ts';

interface FleetSurroundings {
  readonly fleet: Pick<Fleet, 'failure' | 'gateways' | 'drainStatusOf'>;
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
}

/** What is wrong between gateways that share state. While Redis is away, nothing is known of the others. */
export function createFleetProducer({ fleet, registry }: FleetSurroundings): Producer {
  return function* (): Generator<Finding> {
    const { failure } = fleet;
    if (failure !== null) {
      yield { id: 'redis_away', subject: '', figures: { reason: failure } };
      return;
    }
    const versions = toVersions(fleet.gateways());
    if (versions.size > 1) {
      const shown = [...versions].map(([version, names]) => `${version} (${names.join(', ')})`).join(', ');
      yield { id: 'gateway_versions_differ', subject: '', figures: { versions: shown } };
    }
    for (const replica of registry.replicas) {
      if (!replica.hasDrainedName) continue;
      const { inflight, background } = replica;
      const { unconfirmed } = fleet.drainStatusOf(replica.name, { inflight, background });
      if (unconfirmed.length === 0) continue;
      const shown = unconfirmed.map((name) => toShownName(name));
      yield { id: 'drains_not_spread', subject: replica.name, figures: { gateways: toList(shown, 5) } };
    }
  };
}

/** The names of the gateways that tell their version, by it. */
function toVersions(gateways: ReturnType<Fleet['gateways']>): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>();
  for (const { name, version } of gateways) {
    if (version !== null) versions.set(version, [...(versions.get(version) ?? []), toShownName(name)]);
  }
  return versions;
}
