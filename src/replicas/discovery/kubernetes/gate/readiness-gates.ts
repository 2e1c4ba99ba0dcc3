import { type Poll, startPoll } from '../../poll.ts';
import type { Endpoint } from '../../resolver.ts';
import type { KubernetesSource, ServiceConfig } from '../../servers.ts';
import type { ReadinessGateState } from '../../source-state.ts';
import type { PodCheck } from './pod-check.ts';
import { makeConditionTrue } from './pod-condition-api.ts';
import { ReadinessGate, type ReadinessGateLog } from './readiness-gate.ts';

/** How often it is looked whether a pod is to be asked again. */
const INTERVAL_MS = 2_000;

export interface ReadinessGatesCollaborators {
  readonly check: PodCheck;
  readonly log: ReadinessGateLog;
  /** The pods of a source that are not ready, and do not terminate. */
  readonly unreadyOf: (source: KubernetesSource) => readonly Endpoint[];
}

/** The readiness gates of the services that have one. Without any, nothing runs. */
export class ReadinessGates {
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
