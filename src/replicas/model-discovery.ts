import { probeModels } from './probe.ts';
import type { RegisteredReplica, ReplicaRegistry } from './registry.ts';

const RETRY_MS = 2_000;

/** Learns what replicas serve where the configuration says `auto`. */
export interface ModelDiscovery {
  /** Probes once; resolves when every replica answered or failed to. Unknown ones are asked again later. */
  start(): Promise<void>;
  stop(): void;
}

/**
 * Creates the discovery for the replicas of a registry. One that could not tell is asked again every two seconds
 * until it does; a drained one is spared until it is undrained. `onLearned`: the registry knows more than before.
 */
export function createModelDiscovery(
  registry: ReplicaRegistry,
  { timeoutMs, onLearned }: { readonly timeoutMs: number; readonly onLearned: () => void },
): ModelDiscovery {
  let retryTimer: NodeJS.Timeout | null = null;
  let isStopped = false;

  async function probe(replica: RegisteredReplica): Promise<void> {
    const found = await probeModels(replica, timeoutMs);
    if (found !== null && !isStopped) replica.learn(found);
  }

  async function probeUnknown(): Promise<void> {
    const unknown = registry.replicas.filter((replica) => !replica.isFullyKnown);
    const askable = unknown.filter((replica) => !replica.drain.drained);
    await Promise.all(askable.map(probe));
    if (isStopped) return;
    if (askable.some((replica) => replica.isFullyKnown)) onLearned();
    if (unknown.every((replica) => replica.isFullyKnown)) return;
    retryTimer = setTimeout(() => void probeUnknown(), RETRY_MS);
    retryTimer.unref();
  }

  return {
    start: probeUnknown,
    stop() {
      isStopped = true;
      if (retryTimer !== null) clearTimeout(retryTimer);
    },
  };
}
