import type { Replica } from '../../replicas/data/replica.ts';
import type { ProxyCollaborators } from '../proxy-context.ts';

/**
 * The replica that has the response with this id, since engines that keep responses keep them for themselves. Null if
 * that is not known, or the replica is gone.
 */
export function findHome(
  responseId: string | undefined,
  { pool, storedResponses }: Pick<ProxyCollaborators, 'pool' | 'storedResponses'>,
): Replica | null {
  const seed = responseId === undefined ? null : storedResponses.seedOf(responseId);
  return seed === null ? null : pool.replicaOf(seed);
}
