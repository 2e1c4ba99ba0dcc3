import { isIP } from 'node:net';
import type { ReplicaConfig, ServiceConfig } from '../../../config/config.ts';
import type { Endpoint } from './resolver.ts';

/** A host name of letters, digits and dashes, as far as a URL and a replica's name can hold it. */
const HOST_NAME = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;

/** Whether the replicas of a service are the targets of SRV records. */
export function hasSrvRecords(service: ServiceConfig): boolean {
  return new URL(service.url).hostname.startsWith('_');
}

/**
 * The replicas of a service, in an order that depends on nothing but the endpoints. What is no address and no host
 * name, such as the root that an SRV record names to say no, is left out.
 */
export function expandService(service: ServiceConfig, endpoints: readonly Endpoint[]): ReplicaConfig[] {
  return endpoints
    .filter(({ host }) => isIP(host) !== 0 || HOST_NAME.test(host))
    .map((endpoint) => toReplica(service, endpoint))
    .toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
}

function toReplica(service: ServiceConfig, { host, port }: Endpoint): ReplicaConfig {
  const url = new URL(service.url);
  const serviceHost = url.hostname;
  url.hostname = isIP(host) === 6 ? `[${host}]` : host;
  if (port !== null) url.port = String(port);
  return {
    ...service,
    name: toName(service.name, host),
    url: url.origin + url.pathname.replace(/\/$/, ''),
    host: service.host ?? host,
    // A certificate names the service, not the addresses behind it.
    ...(isIP(host) === 0 ? {} : { tlsName: serviceHost }),
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

/** Who there is when every name is resolved, and who had to be left out because the name is taken. */
export interface MergedReplicas {
  readonly replicas: readonly ReplicaConfig[];
  readonly leftOut: readonly ReplicaConfig[];
}

/** Puts the replicas of the file and those of services together. Of two with the same name the first one is in. */
export function mergeReplicas(replicas: readonly ReplicaConfig[]): MergedReplicas {
  const byName = new Map<string, ReplicaConfig>();
  for (const replica of replicas) if (!byName.has(replica.name)) byName.set(replica.name, replica);
  return {
    replicas: [...byName.values()],
    leftOut: replicas.filter((replica) => byName.get(replica.name) !== replica),
  };
}
