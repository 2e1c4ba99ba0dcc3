import type { ReplicaCheck } from '#replicas/discovery';

/** The result of one try to reach a server that the configuration names. Of one that is no replica, `name` is its key in the file. */
export interface ConnectionCheck extends ReplicaCheck {
  readonly kind: 'replica' | 'collector' | 'redis' | 'jwks';
}

/** Where it is, what came of it, and what follows. */
export type Finding = Omit<ConnectionCheck, 'kind' | 'name' | 'durationMs' | 'found'>;

/** Runs one check and measures its time. */
export async function runCheck(
  kind: ConnectionCheck['kind'],
  name: string,
  check: () => Promise<Finding>,
): Promise<ConnectionCheck> {
  const startedMs = performance.now();
  const finding = await check();
  return { ...finding, kind, name, found: null, durationMs: performance.now() - startedMs };
}
