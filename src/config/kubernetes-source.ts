import type { z } from 'zod';
import type { kubernetesSource } from './schema/kubernetes.ts';

/** The key `kubernetes` of a replica in the file. */
export type KubernetesSection = z.output<typeof kubernetesSource>;

/** Where a Service of Kubernetes is read, and what of its pods is used. */
export interface KubernetesSource {
  readonly service: string;
  /** Null: that of the service account. */
  readonly namespace: string | null;
  /** Null, and no `portName`: the only one of the Service. */
  readonly port: number | null;
  readonly portName: string | null;
  readonly addressType: 'auto' | 'IPv4' | 'IPv6';
  readonly apiServer: string;
  /** Absolute, as `caFile`. */
  readonly tokenFile: string;
  readonly caFile: string;
  /** The type of the condition that pods get when they answer; null: none. */
  readonly readinessGate: string | null;
}

/** Converts the keys of the file. */
export function toKubernetesSource(section: KubernetesSection): KubernetesSource {
  return {
    service: section.service,
    namespace: section.namespace ?? null,
    port: section.port ?? null,
    portName: section.port_name ?? null,
    addressType: section.address_type,
    apiServer: section.api_server,
    tokenFile: section.token_file,
    caFile: section.ca_file,
    readinessGate: section.readiness_gate,
  };
}
