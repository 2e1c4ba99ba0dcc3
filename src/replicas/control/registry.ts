import { isDeepStrictEqual } from 'node:util';
import type { Pool } from 'undici';
import type { Engine, ReplicaConfig } from '../../config/config.ts';
import { type ConnectionTimeouts, createProbeConnections, pathPrefixOf } from '../data/connections.ts';
import type { PoolSnapshot, ReplicaKnowledge } from '../pool-snapshot.ts';
import { type Finding, NOT_SEEN, type ReachabilityState } from '../reachability.ts';
import type { GpuTime } from '../shared/gpu-time-table.ts';
import type { Health } from '../shared/health-table.ts';
import type { RampProgress } from '../shared/ramp-table.ts';
import { MAX_REPLICAS, type SharedState } from '../shared/shared-state.ts';
import { CursorAllocator } from './cursor-allocator.ts';
import { diffReplicas, type ReplicaDiffStep } from './diff-replicas.ts';
import type { DrainState, Drains } from './drains.ts';

export interface RegistryCollaborators {
  readonly shared: SharedState;
  readonly drains: Drains;
  /** For the gateway's own probes. */
  readonly timeouts: ConnectionTimeouts;
}

/** One replica as the control plane knows it: its configuration, what probes have found, and its present state. */
export class RegisteredReplica {
  readonly slot: number;
  readonly pathPrefix: string;
  #connections: Pool;
  readonly #collaborators: RegistryCollaborators;
  #config: ReplicaConfig;
  #found: ReplicaKnowledge = { models: null, engine: null, engineVersion: null };
  #removal: { readonly at: string; readonly isApplied: boolean } | null = null;

  constructor(slot: number, config: ReplicaConfig, collaborators: RegistryCollaborators) {
    this.slot = slot;
    this.pathPrefix = pathPrefixOf(config.url);
    this.#connections = createProbeConnections(config, collaborators.timeouts);
    this.#collaborators = collaborators;
    this.#config = config;
  }

  /** For probes only. Requests of clients use the connections of the workers. */
  get connections(): Pool {
    return this.#connections;
  }

  get name(): string {
    return this.#config.name;
  }

  get config(): ReplicaConfig {
    return this.#config;
  }

  /** What is configured, and what probes have found where the configuration says `auto`. */
  get knowledge(): ReplicaKnowledge {
    const { models, engine } = this.#config;
    return {
      models: models === 'auto' ? this.#found.models : models,
      engine: engine === 'auto' ? this.#found.engine : engine,
      engineVersion: this.#found.engineVersion,
    };
  }

  /** Null while its model list is unknown. */
  get models(): readonly string[] | null {
    return this.knowledge.models;
  }

  /** The engine; `openai` while it is unknown. */
  get engine(): Engine {
    return this.knowledge.engine ?? 'openai';
  }

  /** Whether models and engine are known, so that a probe of /v1/models is not urgent. */
  get isFullyKnown(): boolean {
    return this.models !== null && this.knowledge.engine !== null;
  }

  /** The drain state of its name. A removed replica counts as drained, because it takes no requests either. */
  get drain(): DrainState {
    const state = this.#collaborators.drains.stateOf(this.name);
    return this.#removal === null
      ? state
      : { ...state, drained: true, since: this.#removal.at, reason: 'removed' };
  }

  /** Whether its name is drained, whatever else is known of it. */
  get hasDrainedName(): boolean {
    return this.#collaborators.drains.stateOf(this.name).drained;
  }

  /** Whether it was removed and finishes its requests. */
  get isRemoving(): boolean {
    return this.#removal !== null;
  }

  /** Its health; null while it is drained, and if health checks are off. */
  get health(): Health | null {
    return this.drain.drained ? null : this.#collaborators.shared.health.healthOf(this.slot);
  }

  /** What requests and probes have shown; unknown while it is drained. */
  get reachability(): ReachabilityState {
    return this.drain.drained ? NOT_SEEN : this.#collaborators.shared.reachability.stateOf(this.slot);
  }

  /** Whether it has ever answered a request or a probe. */
  get hasAnswered(): boolean {
    return this.#collaborators.shared.reachability.hasAnswered(this.slot);
  }

  /** Notes what a probe has shown. `isEngine`: also, that it is an inference server. */
  noteFinding(finding: Finding, isEngine = false): void {
    this.#collaborators.shared.reachability.note(this.slot, finding, isEngine);
  }

  /** How far its ramp is; null: it gets an even share of the turns, or none. */
  get ramp(): RampProgress | null {
    return this.drain.drained ? null : this.#collaborators.shared.ramps.progressOf(this.slot);
  }

  /** Requests in flight, of all workers. */
  get inflight(): number {
    return this.#collaborators.shared.inflightOf(this.slot);
  }

  /** Its GPU time up to now; null without a `gpu_count`. */
  get gpuTime(): GpuTime | null {
    return this.#config.gpuCount ? this.#collaborators.shared.gpuTimes.timeOf(this.slot) : null;
  }

  /**
   * Whether it is drained and has no requests in flight; null while a worker has not confirmed the drain. A lease is
   * counted before the drained flag is read for the last time, so no request can follow those that are in flight once
   * the drain is confirmed.
   */
  get isSafeToStop(): boolean | null {
    if (!this.drain.drained || this.inflight > 0) return false;
    const isKnown = this.#removal?.isApplied ?? this.#collaborators.drains.isConfirmed(this.name);
    return isKnown ? true : null;
  }

  /** Takes over what a probe has found; the rest stays as it is. */
  learn(found: Partial<ReplicaKnowledge>): void {
    this.#found = { ...this.#found, ...found };
  }

  /** Takes over another configuration of the same server. */
  configure(config: ReplicaConfig): void {
    const hasOtherTls = !isDeepStrictEqual(config.tls, this.#config.tls);
    this.#config = config;
    if (!hasOtherTls) return;
    // A probe in flight ends on the old connections.
    void this.#connections.close();
    this.#connections = createProbeConnections(config, this.#collaborators.timeouts);
  }

  /** Removes it, at a time in RFC 3339. */
  remove(at: string): void {
    this.#removal = { at, isApplied: false };
    void this.#connections.destroy();
  }

  /** Notes that every worker uses a snapshot without it, so that it gets no further requests. */
  forget(): void {
    if (this.#removal !== null) this.#removal = { ...this.#removal, isApplied: true };
    this.#collaborators.drains.unbind(this.name, this.slot);
    this.#collaborators.shared.setDrained(this.slot, true);
  }
}

/** A removed replica, and the version of the first snapshot without it. */
interface Retired {
  readonly replica: RegisteredReplica;
  readonly removedIn: number;
}

/** There is no room for all wanted replicas. `message` is one line for the operator. */
export class TooManyReplicasError extends Error {
  constructor() {
    super(`more than ${MAX_REPLICAS} replicas, including removed ones that finish their requests`);
    this.name = 'TooManyReplicasError';
  }
}

/** The names of the replicas that a configuration has changed. */
export interface ReplicaChanges {
  readonly added: readonly string[];
  /** Includes names that moved to another server. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The replicas of the control plane: their configuration, what is known of them, and their slots and cursors in shared
 * memory. Workers learn of changes through snapshots.
 */
export class ReplicaRegistry {
  readonly #collaborators: RegistryCollaborators;
  readonly #cursors: CursorAllocator;
  #replicas: readonly RegisteredReplica[] = [];
  #isComplete = true;
  #retired: readonly Retired[] = [];
  #freeSlots = Array.from({ length: MAX_REPLICAS }, (_, index) => MAX_REPLICAS - 1 - index);
  #version = 0;

  constructor(collaborators: RegistryCollaborators) {
    this.#collaborators = collaborators;
    this.#cursors = new CursorAllocator(collaborators.shared);
  }

  /** In configured order. */
  get replicas(): readonly RegisteredReplica[] {
    return this.#replicas;
  }

  /** Removed replicas that still finish requests. */
  get removing(): readonly RegisteredReplica[] {
    return this.#retired.map(({ replica }) => replica).filter(isPresent);
  }

  /** The configured replicas, followed by those that are being removed. */
  get all(): readonly RegisteredReplica[] {
    return [...this.#replicas, ...this.removing];
  }

  /** Requests that wait because all replicas of their model are at their `max_inflight`, in all workers. */
  get waiting(): number {
    return this.#collaborators.shared.waiting.count;
  }

  find(name: string): RegisteredReplica | undefined {
    return this.#replicas.find((replica) => replica.name === name);
  }

  /**
   * Takes over the wanted replicas, at a time in RFC 3339. A replica whose name and server stay the same keeps what is
   * known of it; drain states belong to names. Throws a TooManyReplicasError, and changes nothing, if removed replicas
   * that are still busy leave too little room. `isComplete`: whether the names of all services are resolved.
   */
  configure(configs: readonly ReplicaConfig[], at: string, { isComplete = true } = {}): ReplicaChanges {
    const { steps, removed } = diffReplicas(
      this.#replicas.map(({ config }) => config),
      configs,
    );
    const isNew = ({ action }: ReplicaDiffStep) => action === 'add' || action === 'replace';
    this.#releaseSlots();
    if (steps.filter(isNew).length > this.#freeSlots.length) throw new TooManyReplicasError();
    this.#isComplete = isComplete;
    const present = new Map(this.#replicas.map((replica) => [replica.name, replica]));
    this.#replicas = steps.map((step) => {
      const known = isNew(step) ? undefined : present.get(step.config.name);
      if (known === undefined) return this.#add(step.config);
      known.configure(step.config);
      return known;
    });
    const kept = new Set(this.#replicas);
    for (const replica of present.values()) if (!kept.has(replica)) this.#retire(replica, at);
    const namesOf = (...actions: readonly ReplicaDiffStep['action'][]) =>
      steps.filter(({ action }) => actions.includes(action)).map(({ config }) => config.name);
    return { added: namesOf('add'), changed: namesOf('configure', 'replace'), removed };
  }

  /** Requests in flight by name, including those on removed replicas; names without any are left out. */
  inflightByName(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name, inflight } of this.all) {
      if (inflight > 0) counts.set(name, (counts.get(name) ?? 0) + inflight);
    }
    return counts;
  }

  /** The snapshot to publish to the workers. */
  nextSnapshot(): PoolSnapshot {
    this.#version++;
    return {
      version: this.#version,
      replicas: this.#replicas.map(({ slot, config, knowledge }) => ({ slot, config, knowledge })),
      isComplete: this.#isComplete,
      cursors: this.#cursors.assign(this.#replicas),
    };
  }

  /**
   * Notes that every worker uses the snapshot of this version, so that none takes a lease on a replica that it leaves
   * out. Requests that hold such a lease and are not written yet move to another replica, as with a drain.
   */
  noteApplied(version: number): void {
    for (const { replica, removedIn } of this.#retired) if (removedIn <= version) replica.forget();
    this.#releaseSlots();
  }

  /** Destroys the connections for probes. */
  async close(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.connections.destroy()));
  }

  #add(config: ReplicaConfig): RegisteredReplica {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new TooManyReplicasError();
    this.#collaborators.shared.clearSlot(slot);
    this.#collaborators.drains.bind(config.name, slot);
    return new RegisteredReplica(slot, config, this.#collaborators);
  }

  #retire(replica: RegisteredReplica, at: string): void {
    replica.remove(at);
    this.#retired = [...this.#retired, { replica, removedIn: this.#version + 1 }];
  }

  /** Frees the slots of removed replicas that have finished their requests. */
  #releaseSlots(): void {
    const present = this.#retired.filter(({ replica }) => isPresent(replica));
    const gone = this.#retired.filter((retired) => !present.includes(retired));
    this.#retired = present;
    for (const { replica } of gone) this.#freeSlots.push(replica.slot);
  }
}

/** Whether a removed replica may still have requests in flight. */
function isPresent({ isSafeToStop }: RegisteredReplica): boolean {
  return isSafeToStop !== true;
}
