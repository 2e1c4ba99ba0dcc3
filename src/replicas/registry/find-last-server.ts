import type { SecuredReplica } from '#config';
import type { RegisteredReplica } from './registered-replica.ts';

/** What is asked of a replica that is configured. */
type Wanted = Pick<SecuredReplica, 'name' | 'role'>;

/**
 * A model that only replicas which are to become shadows serve, as far as that is known; null if there is none. Replicas
 * of services, and those whose models are not known yet, may serve any.
 */
export function findLastServer(
  replicas: readonly RegisteredReplica[],
  wanted: readonly Wanted[],
): { readonly replica: string; readonly model: string } | null {
  const present = new Map(replicas.map((replica) => [replica.name, replica]));
  // One that is a shadow for a while serves nobody until that ends.
  const isServing = ({ name, role }: Wanted) => role === 'serve' && present.get(name)?.trial == null;
  const serves = new Set(wanted.filter(isServing).map(({ name }) => name));
  const becomes = new Set(wanted.filter(({ role }) => role === 'shadow').map(({ name }) => name));
  const mayServeAny = [...serves].some((name) => {
    const models = present.get(name)?.models;
    return models == null || models.includes('*');
  });
  if (mayServeAny) return null;
  const served = new Set([...serves].flatMap((name) => present.get(name)?.models ?? []));
  for (const { name, models, shadow } of replicas) {
    if (shadow !== null || !becomes.has(name)) continue;
    const model = models?.find((each) => each !== '*' && !served.has(each));
    if (model !== undefined) return { replica: name, model };
  }
  return null;
}
