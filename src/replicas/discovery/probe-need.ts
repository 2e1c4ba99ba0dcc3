import type { RegisteredReplica } from '#replicas/registry';

/** Whether a probe can tell which requests a replica takes and how they must be made. */
export function isAwaited({ config: { models, engine } }: RegisteredReplica): boolean {
  return models === 'auto' || engine === 'auto' || engine === 'vllm';
}

/** Whether a replica is probed again soon. */
export function isUrgent({ isFullyKnown, reachability }: RegisteredReplica): boolean {
  return !isFullyKnown || reachability.state !== 'reachable';
}
