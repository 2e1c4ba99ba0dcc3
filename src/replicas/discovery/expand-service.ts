import { isIP } from 'node:net';
import type { ReplicaConfig } from '#replicas/terms';
import { byName } from './order-by-name.ts';
import type { Endpoint } from './resolver.ts';
import type { ServiceConfig } from './servers.ts';

/** A host name that a URL and a replica's name can contain: letters, digits, dashes and underscores. */
const HOST_NAME = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;

/** The names that the configuration allows. */
const REPLICA_NAME = /^[A-Za-z0-9._~-]{1,128}$/;

/** Whether the replicas of a service are the targets of SRV records. */
export function hasSrvRecords(service: ServiceConfig): boolean {
  return new URL(service.url).hostname.startsWith('_');
}

/**
 * The replicas of a service, in an order that depends only on the endpoints. A host that is neither an address nor a
 * host name is left out, such as the root (RFC 2782: the service is not available).
 */
export function expandService(service: ServiceConfig, endpoints: readonly Endpoint[]): ReplicaConfig[] {
  return endpoints
    .filter(({ host }) => isIP(host) !== 0 || HOST_NAME.test(host))
    .map((endpoint) => toReplica(service, endpoint))
    .toSorted(byName);
}

function toReplica(
  { kubernetes: _, ...service }: ServiceConfig,
  { host, port, server }: Endpoint,
): ReplicaConfig {
  const pod = server?.pod ?? null;
  const url = new URL(service.url);
  const serviceHost = url.hostname;
  url.hostname = isIP(host) === 6 ? `[${host}]` : host;
  if (port !== null) url.port = String(port);
  return {
    ...service,
    name: pod !== null && REPLICA_NAME.test(pod.name) ? pod.name : toName(service.name, host),
    url: url.origin + url.pathname.replace(/\/$/, ''),
    host: service.host ?? server?.node ?? host,
    ...(pod === null || pod.uid === null ? {} : { serverId: pod.uid }),
    // The certificate is for the service's name, not for the addresses behind it.
    ...(isIP(host) === 0 || service.tlsName !== undefined ? {} : { tlsName: serviceHost }),
  };
}

/**
 * `vllm` at 10.0.0.11 → `vllm-10.0.0.11`; at fd00::b → `vllm-fd00--b`; at vllm-0.vllm.llm.svc.cluster.local →
 * `vllm-0`, the pod's own name; at gpu-7.example.com → `vllm-gpu-7`.
 */
function toName(serviceName: string, host: string): string {
  const own = isIP(host) === 0 ? (host.split('.', 1)[0] ?? host) : host.replaceAll(':', '-');
  return own.startsWith(`${serviceName}-`) ? own : `${serviceName}-${own}`;
}

/** The replicas of the file and of all services, and those left out because their name is taken. */
export interface MergedReplicas {
  readonly replicas: readonly ReplicaConfig[];
  readonly leftOut: readonly ReplicaConfig[];
}

/** Removes duplicates: of several replicas with one name, the first one stays. */
export function mergeReplicas(replicas: readonly ReplicaConfig[]): MergedReplicas {
  const firstOf = new Map<string, ReplicaConfig>();
  for (const replica of replicas) if (!firstOf.has(replica.name)) firstOf.set(replica.name, replica);
  return {
    replicas: [...firstOf.values()],
    leftOut: replicas.filter((replica) => firstOf.get(replica.name) !== replica),
  };
}
