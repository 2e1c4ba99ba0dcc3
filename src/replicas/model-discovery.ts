import type { ReplicaPool } from './pool.ts';
import { probeModels } from './probe.ts';
import type { Replica } from './replica.ts';

const RETRY_MS = 2_000;

/** Learns what replicas serve where the configuration says `auto`. */
export interface ModelDiscovery {
  /** Probes once; resolves when every replica answered or failed to. Unknown ones are asked again later. */
  start(): Promise<void>;
  stop(): void;
}

/**
 * Creates the discovery for a pool. A replica that could not tell is asked again every two seconds until
 * it does; a drained one is spared until it is undrained.
 */
export function createModelDiscovery(
  pool: ReplicaPool,
  settings: { readonly timeoutMs: number },
): ModelDiscovery {
  let retryTimer: NodeJS.Timeout | null = null;
  let isStopped = false;

  async function probe(replica: Replica): Promise<void> {
    const found = await probeModels(replica, settings.timeoutMs);
    if (found !== null && !isStopped) replica.learn(found);
  }

  async function probeUnknown(): Promise<void> {
    const unknown = pool.replicas.filter((replica) => !replica.isFullyKnown);
    const askable = unknown.filter((replica) => !replica.drain.drained);
    await Promise.all(askable.map(probe));
    if (isStopped) return;
    if (askable.some((replica) => replica.isFullyKnown)) pool.refreshModels();
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
