import type { ReplicaConfig } from '#replicas/terms';
import { EndpointDiscovery, type EndpointLog } from './endpoint-discovery.ts';
import type { PodCheck } from './kubernetes/gate/pod-check.ts';
import { ReadinessGates } from './kubernetes/gate/readiness-gates.ts';
import { KubernetesDiscovery } from './kubernetes/kubernetes-discovery.ts';
import { type ListedPodUids, listPodUids } from './kubernetes/list-pod-uids.ts';
import type { Endpoint, Resolver } from './resolver.ts';
import type { ServiceConfig } from './servers.ts';
import type { SourceState } from './source-state.ts';

export interface ServiceEndpointsCollaborators {
  readonly resolver: Resolver;
  readonly log: EndpointLog;
  /** Asks a pod whether it is ready to serve. */
  readonly checkPod: PodCheck;
  /** Called when Kubernetes has told of a change. */
  readonly onChange: () => void;
}

/** The servers behind services: from DNS, which is asked again and again, or from Kubernetes, which tells of changes. */
export class ServiceEndpoints {
  readonly #dns: EndpointDiscovery;
  readonly #kubernetes: KubernetesDiscovery;
  readonly #gates: ReadinessGates;

  constructor({ resolver, log, checkPod, onChange }: ServiceEndpointsCollaborators) {
    this.#dns = new EndpointDiscovery(resolver, log);
    this.#kubernetes = new KubernetesDiscovery({
      log,
      onChange: () => {
        this.#gates.update();
        onChange();
      },
    });
    this.#gates = new ReadinessGates({
      log,
      check: checkPod,
      unreadyOf: (source) => this.#kubernetes.unreadyOf(source),
    });
  }

  /** Null if they were never found. */
  endpointsOf(service: ServiceConfig): readonly Endpoint[] | null {
    const { kubernetes } = service;
    return kubernetes === null ? this.#dns.endpointsOf(service) : this.#kubernetes.endpointsOf(kubernetes);
  }

  /** Whether all were found. A Service without a ready pod was not: its models may come back. */
  areAllKnown(services: readonly ServiceConfig[]): boolean {
    return services.every((service) => {
      const endpoints = this.endpointsOf(service);
      return endpoints !== null && (service.kubernetes === null || endpoints.length > 0);
    });
  }

  /** Whether a server was held back by a readiness gate until a moment ago. */
  hasPassedGate({ serverId }: ReplicaConfig): boolean {
    return serverId !== undefined && this.#gates.hasPassed(serverId);
  }

  /** Resolves names again, and begins to watch what is not watched yet. Waits for that at most `timeoutMs`. */
  async find(services: readonly ServiceConfig[], timeoutMs: number): Promise<void> {
    const names = services.filter(({ kubernetes }) => kubernetes === null);
    await Promise.all([this.#dns.resolve(names, timeoutMs), this.#kubernetes.watch(services, timeoutMs)]);
    this.#gates.follow(services);
  }

  /** Ends the watches and the readiness gates of all others. */
  keepOnly(services: readonly ServiceConfig[]): void {
    this.#kubernetes.keepOnly(services);
    this.#gates.follow(services);
  }

  /** Whether the source of each answers. */
  statesOf(services: readonly ServiceConfig[]): readonly SourceState[] {
    return services.map((service) => {
      const { name, kubernetes } = service;
      return kubernetes === null
        ? { name, kind: 'dns', ...this.#dns.statusOf(service), readinessGate: null }
        : {
            name,
            kind: 'kubernetes',
            ...this.#kubernetes.statusOf(kubernetes),
            readinessGate: this.#gates.stateOf(service),
          };
    });
  }

  /** The uids of the pods with all of these labels, in the namespaces of these services. Never rejects. */
  listPods(services: readonly ServiceConfig[], labels: readonly string[]): Promise<ListedPodUids> {
    return listPodUids(
      services.flatMap(({ kubernetes }) => kubernetes ?? []),
      labels,
    );
  }

  stop(): void {
    this.#gates.stop();
    this.#kubernetes.stop();
  }
}
