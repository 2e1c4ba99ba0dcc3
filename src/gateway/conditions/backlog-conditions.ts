import type { Finding, Producer } from '#conditions';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/control';

/** How far above the median of its peers is far. */
const FAR = { times: 4, more: 16 } as const;

/** Replicas that have far more requests in flight than those of the same models. */
export function createBacklogProducer(registry: Pick<ReplicaRegistry, 'replicas'>): Producer {
  return function* (): Generator<Finding> {
    const serving = registry.replicas.filter(getsItsTurns);
    const peersOf = toPeers(serving);
    for (const replica of serving) {
      const { name: subject, inflight } = replica;
      if (inflight < FAR.more) continue;
      const peers = medianOf(peersOf(replica).map((peer) => peer.inflight));
      if (peers === null || inflight < FAR.times * peers || inflight < peers + FAR.more) continue;
      yield { id: 'replica_backlog', subject, figures: { inflight, peers } };
    }
  };
}

/** One that is skipped, tried last or warms up has less in flight than the others, which says nothing about them. */
function getsItsTurns({ drain, reachability, health, ramp }: RegisteredReplica): boolean {
  const { reason } = reachability;
  return !drain.drained && reason === null && health?.state !== 'failing' && ramp === null;
}

/** Finds those with the same models and the same GPUs. */
function toPeers(
  replicas: readonly RegisteredReplica[],
): (replica: RegisteredReplica) => readonly RegisteredReplica[] {
  const groups = new Map<string, RegisteredReplica[]>();
  const keyOf = ({ models, config }: RegisteredReplica) =>
    JSON.stringify([models?.toSorted() ?? null, config.gpuModel, config.gpuCount, config.maxInflight]);
  for (const replica of replicas) {
    const key = keyOf(replica);
    groups.set(key, [...(groups.get(key) ?? []), replica]);
  }
  return (replica) => (groups.get(keyOf(replica)) ?? []).filter((other) => other !== replica);
}

/** Of two in the middle the greater one. */
function medianOf(counts: readonly number[]): number | null {
  return counts.toSorted((a, b) => a - b)[Math.floor(counts.length / 2)] ?? null;
}
