import { createProbeConnections, pathPrefixOf } from '#replicas';
import { type ProbeResult, type ProbeTarget, probeEngine, toHealthFinding } from '#replicas/probes';
import { REASON_TEXTS } from '#replicas/reachability';
import type { ReplicaConfig } from '#replicas/terms';

/** How long a pod may take to answer each of the two requests. */
const TIMEOUT_MS = 5_000;

export interface PodCheckCollaborators {
  /** How long a connection may take to open. */
  readonly connectMs: () => number;
  /** Requests the configured health path. */
  readonly probeHealth: (target: ProbeTarget, timeoutMs: number) => Promise<ProbeResult>;
}

/** Why a pod is not ready to serve, as a phrase; null if it is. Ends early when the signal is aborted. Never rejects. */
export type PodCheck = (pod: ReplicaConfig, signal: AbortSignal) => Promise<string | null>;

/**
 * Creates the check: the pod must list its models, and those that are configured, and its health path must not fail,
 * because some engines list models that they still load.
 */
export function createPodCheck({ connectMs, probeHealth }: PodCheckCollaborators): PodCheck {
  return async (config, signal) => {
    const connections = createProbeConnections(config, connectMs());
    const stop = () => void connections.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
      const target = { connections, pathPrefix: pathPrefixOf(config.url), config };
      const { problem } = await probeEngine(target, { timeoutMs: TIMEOUT_MS, hasCompletion: false });
      if (problem !== null || signal.aborted) return problem;
      const health = await probeHealth(target, TIMEOUT_MS);
      const finding = health.kind === 'failure' ? health.reason : toHealthFinding(health);
      return finding === 'reachable' ? null : REASON_TEXTS[finding];
    } finally {
      signal.removeEventListener('abort', stop);
      await connections.destroy();
    }
  };
}
