import type { Finding, Producer } from '#conditions';
import { toShownName } from '#otel/base';
import type { ReplicaRegistry } from '#replicas/registry';

/** A drain that is older may be forgotten. */
const OLD_MS = 3_600_000;

/** Replicas that have been drained for long. */
export function createDrainProducer(
  registry: Pick<ReplicaRegistry, 'replicas'>,
  epochMs: () => number = Date.now,
): Producer {
  return function* (): Generator<Finding> {
    for (const { name, drain, isRemoving } of registry.replicas) {
      if (!drain.drained || isRemoving) continue;
      const drainedMs = Date.parse(drain.since ?? '');
      const ageMs = epochMs() - drainedMs;
      // Without a time it is not known how old it is.
      if (!(ageMs >= OLD_MS)) continue;
      const reason = drain.reason === null ? '' : `: ${toShownName(drain.reason)}`;
      const figures = { age: Math.floor(ageMs / 1_000), reason };
      yield { id: 'drain_old', subject: name, figures, sinceEpochMs: drainedMs + OLD_MS };
    }
  };
}
