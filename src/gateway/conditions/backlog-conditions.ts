import type { Finding, Producer } from '#conditions';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';

/** How far above the median of its peers is far. */
const FAR = { times: 4, more: 16 } as const;

/** Replicas that have far more requests in flight than those of the same models. */
export function createBacklogProducer(registry: Pick<ReplicaRegistry, 'replicas'>): Producer {
  return function* (): Generator<Finding> {
    const serving = registry.replicas.filter(getsItsTurns);
    if (!serving.some(({ inflight }) => inflight >= FAR.more)) return;
    for (const alike of Map.groupBy(serving, toKind).values()) yield* ofAlike(alike);
  };
}

function* ofAlike(alike: readonly RegisteredReplica[]): Generator<Finding> {
  const counts = alike.map(({ name, inflight }) => ({ name, inflight }));
  const sorted = counts.map(({ inflight }) => inflight).toSorted((a, b) => a - b);
  for (const { name: subject, inflight } of counts) {
    if (inflight < FAR.more) continue;
    const peers = medianOfOthers(sorted, inflight);
    if (peers === null || inflight < FAR.times * peers || inflight < peers + FAR.more) continue;
    yield { id: 'replica_backlog', subject, figures: { inflight, peers } };
  }
}

/** One that is skipped, tried last or warms up has less in flight than the others, which says nothing about them. */
function getsItsTurns({ drain, reachability, health, ramp, shadow }: RegisteredReplica): boolean {
  const { reason } = reachability;
  return shadow === null && !drain.drained && reason === null && health?.state !== 'failing' && ramp === null;
}

/** Those with the same models and the same GPUs are of one kind. */
function toKind({ models, config }: RegisteredReplica): string {
  return JSON.stringify([models?.toSorted() ?? null, config.gpuModel, config.gpuCount, config.maxInflight]);
}

/** The median of all but one; of two in the middle the greater one. Null: there is no other. */
function medianOfOthers(sorted: readonly number[], own: number): number | null {
  const middle = Math.floor((sorted.length - 1) / 2);
  return (middle < sorted.indexOf(own) ? sorted[middle] : sorted[middle + 1]) ?? null;
}
