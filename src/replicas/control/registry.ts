import type { Pool } from 'undici';
import type { Engine, ReplicaConfig } from '../../config/config.ts';
import { type ConnectionTimeouts, createProbeConnections, pathPrefixOf } from '../data/connections.ts';
import type { PoolSnapshot, ReplicaKnowledge } from '../pool-snapshot.ts';
import type { Reachability } from '../reachability.ts';
import type { Health } from '../shared/health-table.ts';
import { MAX_REPLICAS, type SharedState } from '../shared/shared-state.ts';
import { CursorAllocator } from './cursor-allocator.ts';
import { diffReplicas, type ReplicaDiffStep } from './diff-replicas.ts';
import type { DrainState, Drains } from './drains.ts';

/** What the registry works with. */
export interface RegistryCollaborators {
  readonly shared: SharedState;
  readonly drains: Drains;
  /** For the gateway's own probes. */
  readonly timeouts: ConnectionTimeouts;
}

/** One replica as the control plane knows it: what is configured, what was found out, and how it stands now. */
export class RegisteredReplica {
  readonly slot: number;
  readonly pathPrefix: string;
  /** The control plane's own, for probes: requests of clients go by those of the workers. */
  readonly connections: Pool;
  readonly #with: RegistryCollaborators;
  #config: ReplicaConfig;
  #found: ReplicaKnowledge = { models: null, engine: null, engineVersion: null };
  #removal: { readonly at: string; readonly isApplied: boolean } | null = null;

  constructor(slot: number, config: ReplicaConfig, collaborators: RegistryCollaborators) {
    this.slot = slot;
    this.pathPrefix = pathPrefixOf(config.url);
    this.connections = createProbeConnections(config, collaborators.timeouts);
    this.#with = collaborators;
    this.#config = config;
  }

  get name(): string {
    return this.#config.name;
  }

  get config(): ReplicaConfig {
    return this.#config;
  }

  /** What is configured, and what a probe found where that is `auto`. */
  get knowledge(): ReplicaKnowledge {
    const { models, engine } = this.#config;
    return {
      models: models === 'auto' ? this.#found.models : models,
      engine: engine === 'auto' ? this.#found.engine : engine,
      engineVersion: this.#found.engineVersion,
    };
  }

  /** Null while the list is not known. */
  get models(): readonly string[] | null {
    return this.knowledge.models;
  }

  /** The engine whose wire habits apply; `openai` while it is not known. */
  get engine(): Engine {
    return this.knowledge.engine ?? 'openai';
  }

  /** Whether a probe of /v1/models could still tell something the configuration leaves open. */
  get isFullyKnown(): boolean {
    return this.models !== null && this.knowledge.engine !== null;
  }

  /** One that was removed takes no requests either, whatever the state of its name. */
  get drain(): DrainState {
    const state = this.#with.drains.stateOf(this.name);
    return this.#removal === null
      ? state
      : { ...state, drained: true, since: this.#removal.at, reason: 'removed' };
  }

  /** Whether it is wanted no more, and finishes what it has in flight. */
  get isRemoving(): boolean {
    return this.#removal !== null;
  }

  /** Whether it fails; null if nobody judges, and while it is drained. */
  get health(): Health | null {
    return this.drain.drained ? null : this.#with.shared.health.healthOf(this.slot);
  }

  /** Whether it answers, as far as requests and probes have shown; unknown while it is drained. */
  get reachability(): Reachability {
    return this.drain.drained ? 'unknown' : this.#with.shared.reachabilityOf(this.slot);
  }

  /** Notes what a probe has shown. */
  noteReachability(reachability: Reachability): void {
    this.#with.shared.noteReachability(this.slot, reachability);
  }

  /** Requests in flight on it, from all workers. */
  get inflight(): number {
    return this.#with.shared.inflightOf(this.slot);
  }

  /**
   * Drained, and nothing in flight; null while a worker has not said that it knows of it. A lease is counted
   * before the flag is read for the last time: what is in flight after the drain is all that can still be sent.
   */
  get isSafeToStop(): boolean | null {
    if (!this.drain.drained || this.inflight > 0) return false;
    const isKnown = this.#removal?.isApplied ?? this.#with.drains.isConfirmed(this.name);
    return isKnown ? true : null;
  }

  /** Takes over what a probe found, and keeps what others found. */
  learn(found: Partial<ReplicaKnowledge>): void {
    this.#found = { ...this.#found, ...found };
  }

  /** Takes over another configuration of the same server. */
  configure(config: ReplicaConfig): void {
    this.#config = config;
  }

  /** It is wanted no more, since a time in RFC 3339. */
  remove(at: string): void {
    this.#removal = { at, isApplied: false };
    void this.connections.destroy();
  }

  /** Every worker goes by a topology without it: what it has in flight is its last. */
  forget(): void {
    if (this.#removal !== null) this.#removal = { ...this.#removal, isApplied: true };
    this.#with.drains.unbind(this.name, this.slot);
    this.#with.shared.setDrained(this.slot, true);
  }
}

/** A replica that was removed, and the first topology without it. */
interface Retired {
  readonly replica: RegisteredReplica;
  readonly goneSince: number;
}

/** There is no room for all the replicas that are wanted. `message` is one line for the operator. */
export class TooManyReplicasError extends Error {
  constructor() {
    super(`more than ${MAX_REPLICAS} replicas, those included that finish their last requests`);
    this.name = 'TooManyReplicasError';
  }
}

/** The names of the replicas that a new configuration concerned. */
export interface ReplicaChanges {
  readonly added: readonly string[];
  /** Those that moved to another server are among them. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The replicas of the control plane: which there are, what is known of them, and the slots and cursors that they
 * have in shared memory. What it says goes to the workers as topologies.
 */
export class ReplicaRegistry {
  readonly #with: RegistryCollaborators;
  readonly #turns: CursorAllocator;
  #replicas: readonly RegisteredReplica[] = [];
  #isComplete = true;
  #retired: readonly Retired[] = [];
  #freeSlots = Array.from({ length: MAX_REPLICAS }, (_, index) => MAX_REPLICAS - 1 - index);
  #version = 0;

  constructor(collaborators: RegistryCollaborators) {
    this.#with = collaborators;
    this.#turns = new CursorAllocator(collaborators.shared);
  }

  /** In configured order. */
  get replicas(): readonly RegisteredReplica[] {
    return this.#replicas;
  }

  /** Those that were removed and still finish what they have in flight. */
  get removing(): readonly RegisteredReplica[] {
    return this.#retired.map(({ replica }) => replica).filter(isPresent);
  }

  /** The configured ones, and behind them those that are being removed. */
  get all(): readonly RegisteredReplica[] {
    return [...this.#replicas, ...this.removing];
  }

  /** Requests that wait because all replicas of their model are at their `max_inflight`, in all workers. */
  get waiting(): number {
    return this.#with.shared.waiting.waiting;
  }

  find(name: string): RegisteredReplica | undefined {
    return this.#replicas.find((replica) => replica.name === name);
  }

  /**
   * Takes over the wanted replicas, at a time in RFC 3339. One with the name and the server of a present one is that
   * one, and keeps what is known of it; drains go by name. Throws a TooManyReplicasError, and changes nothing,
   * when those that are removed and not yet gone leave too little room. `isComplete`: whether these are all that are meant.
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

  /** Requests in flight by name, on replicas that were removed too; names without any are left out. */
  inflightByName(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { name, inflight } of this.all) {
      if (inflight > 0) counts.set(name, (counts.get(name) ?? 0) + inflight);
    }
    return counts;
  }

  /** What the workers are to know from now on. */
  nextSnapshot(): PoolSnapshot {
    this.#version++;
    return {
      version: this.#version,
      replicas: this.#replicas.map(({ slot, config, knowledge }) => ({ slot, config, knowledge })),
      isComplete: this.#isComplete,
      cursors: this.#turns.assign(this.#replicas),
    };
  }

  /**
   * Every worker goes by the topology of this version: none takes a lease on what it left out. Leases that were taken
   * before and whose request is not yet written are moved on to another replica, as by a drain.
   */
  noteApplied(version: number): void {
    for (const { replica, goneSince } of this.#retired) if (goneSince <= version) replica.forget();
    this.#releaseSlots();
  }

  /** Destroys the connections of probes. */
  async close(): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.connections.destroy()));
  }

  #add(config: ReplicaConfig): RegisteredReplica {
    const slot = this.#freeSlots.pop();
    if (slot === undefined) throw new TooManyReplicasError();
    this.#with.shared.clearSlot(slot);
    this.#with.drains.bind(config.name, slot);
    return new RegisteredReplica(slot, config, this.#with);
  }

  #retire(replica: RegisteredReplica, at: string): void {
    replica.remove(at);
    this.#retired = [...this.#retired, { replica, goneSince: this.#version + 1 }];
  }

  /** Those of replicas that have finished since this was looked for: nobody missed them. */
  #releaseSlots(): void {
    const present = this.#retired.filter(({ replica }) => isPresent(replica));
    const gone = this.#retired.filter((retired) => !present.includes(retired));
    this.#retired = present;
    for (const { replica } of gone) this.#freeSlots.push(replica.slot);
  }
}

/** Whether one that was removed may still have something in flight. */
function isPresent({ isSafeToStop }: RegisteredReplica): boolean {
  return isSafeToStop !== true;
}
