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
    const telling = fleet.gateways().filter(({ version }) => version !== null);
    const versions = Map.groupBy(telling, ({ version }) => version);
    if (versions.size > 1) {
      const namesOf = (gateways: typeof telling) => gateways.map(({ name }) => toShownName(name)).join(', ');
      const shown = [...versions].map(([version, of]) => `${version} (${namesOf(of)})`).join(', ');
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
