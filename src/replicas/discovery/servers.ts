import type { SecuredReplica } from '#config';
import type { ReplicaConfig } from '#replicas/terms';

/** Where a Service of Kubernetes is read, and what of its pods is used. */
export type KubernetesSource = NonNullable<SecuredReplica['kubernetes']>;

/**
 * A DNS name, or a Service of Kubernetes, that stands for several replicas, which differ only in `name`, `url`, `host`
 * and `serverId`. The name of each replica begins with `name`, or is that of its pod; `host` is null if each replica has
 * its own. With `kubernetes`, the servers give `url` their address and port.
 */
export type ServiceConfig = Omit<SecuredReplica, 'url' | 'dns'> & { readonly url: string };

/** The entries of the configuration that are replicas, and those that stand for several. */
export interface Servers {
  readonly replicas: readonly ReplicaConfig[];
  readonly services: readonly ServiceConfig[];
}

/** Tells them apart. */
export function splitServers(entries: readonly SecuredReplica[]): Servers {
  const replicas: ReplicaConfig[] = [];
  const services: ServiceConfig[] = [];
  for (const { url, dns, kubernetes, ...entry } of entries) {
    const serviceUrl = kubernetes === null ? dns : toServiceUrl(kubernetes);
    if (serviceUrl !== null) services.push({ ...entry, kubernetes, url: serviceUrl });
    else if (url !== null) replicas.push({ ...entry, url, host: entry.host ?? new URL(url).hostname });
  }
  return { replicas, services };
}

/** Its host is the name in the certificate of the pods, if they have one. */
function toServiceUrl({ service, namespace, scheme }: KubernetesSource): string {
  return `${scheme}://${namespace === null ? service : `${service}.${namespace}.svc`}`;
}
