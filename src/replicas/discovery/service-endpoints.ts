import type { Log } from '#otel/base';
import type { ReplicaConfig } from '#replicas/terms';
import { EndpointDiscovery } from './endpoint-discovery.ts';
import type { PodCheck } from './kubernetes/gate/pod-check.ts';
import { makeConditionTrue } from './kubernetes/gate/pod-condition-api.ts';
import { ReadinessGate } from './kubernetes/gate/readiness-gate.ts';
import { KubernetesDiscovery } from './kubernetes/kubernetes-discovery.ts';
import { type ListedPodUids, listPodUids } from './kubernetes/list-pod-uids.ts';
import { type Poll, startPoll } from './poll.ts';
import type { Endpoint, Resolver } from './resolver.ts';
import type { KubernetesSource, ServiceConfig } from './servers.ts';
import type { ReadinessGateState, SourceState } from './source-state.ts';

export interface ServiceEndpointsCollaborators {
  readonly resolver: Resolver;
  readonly log: Log<'info' | 'warn'>;
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

/** How often it is looked whether a pod is to be asked again. */
const INTERVAL_MS = 2_000;

interface ReadinessGatesCollaborators {
  readonly check: PodCheck;
  readonly log: Log<'info' | 'warn'>;
  /** The pods of a source that are not ready, and do not terminate. */
  readonly unreadyOf: (source: KubernetesSource) => readonly Endpoint[];
}

/** The readiness gates of the services that have one. Without any, nothing runs. */
class ReadinessGates {
  readonly #collaborators: ReadinessGatesCollaborators;
  readonly #gates = new Map<string, ReadinessGate>();
  #services: readonly ServiceConfig[] = [];
  #poll: Poll | null = null;
  #isStopped = false;

  constructor(collaborators: ReadinessGatesCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Confirms the pods of these services, and of no others. A gate that stays keeps what it knows. */
  follow(services: readonly ServiceConfig[]): void {
    if (this.#isStopped) return;
    this.#services = services.filter(({ kubernetes }) => kubernetes?.readinessGate != null);
    const wanted = new Set(this.#services.map(keyOf));
    for (const [key, gate] of this.#gates) {
      if (wanted.has(key)) continue;
      gate.stop();
      this.#gates.delete(key);
    }
    if (this.#services.length > 0) this.#poll ??= startPoll(async () => this.update(), INTERVAL_MS);
    else this.#stopPoll();
    this.update();
  }

  /** Takes over which pods are not ready now. */
  update(): void {
    for (const service of this.#services) {
      const { kubernetes: source } = service;
      if (source === null) continue;
      const key = keyOf(service);
      const gate = this.#gates.get(key) ?? this.#open(service, source);
      this.#gates.set(key, gate);
      gate.update(service, this.#collaborators.unreadyOf(source));
    }
  }

  /** Null if the service has no gate. */
  stateOf(service: ServiceConfig): ReadinessGateState | null {
    return this.#gates.get(keyOf(service))?.state ?? null;
  }

  /** Whether the pod with this uid has become ready at a gate. */
  hasPassed(uid: string): boolean {
    return [...this.#gates.values()].some((gate) => gate.hasLeft(uid));
  }

  stop(): void {
    this.follow([]);
    this.#isStopped = true;
  }

  #open(service: ServiceConfig, source: KubernetesSource): ReadinessGate {
    const { check, log } = this.#collaborators;
    return new ReadinessGate(service, source.readinessGate ?? '', {
      check,
      log,
      write: (pod, condition, signal) => makeConditionTrue(source, pod, condition, signal),
    });
  }

  #stopPoll(): void {
    this.#poll?.stop();
    this.#poll = null;
  }
}

/** Another name, source or condition is another gate. */
function keyOf({ name, kubernetes }: ServiceConfig): string {
  return JSON.stringify([name, kubernetes]);
}
